#pragma once
// strata/datasets/impl/epoch_phases.ipp - steps dealt to data sets by their weights.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <strata/datasets/epoch_phases.hpp>

namespace strata::datasets {

namespace detail {

/// Where the phase that begins at `step` ends at the latest: the next of the equal parts of a falling weight's time.
inline std::int64_t end_of_fall_phase(std::int64_t step, std::int64_t last_step) noexcept {
    const std::int64_t part = step * fall_phases / last_step + 1;
    return std::max(step + 1, (last_step * part + fall_phases - 1) / fall_phases);
}

/// Deals `steps` to those with a weight, of whom none gets more than it has left. `owed` is what rounding took from each
/// in the phases before; there must be enough left.
inline std::vector<std::int64_t> dealt(std::int64_t steps, const std::vector<double>& weights,
                                       const std::vector<std::int64_t>& left, std::vector<double>& owed) {
    double all = 0;
    for (const double weight : weights) all += weight;
    std::vector<std::int64_t> counts(weights.size(), 0);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] == 0) continue;
        owed[i] += static_cast<double>(steps) * weights[i] / all;
        counts[i] = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(owed[i])), 0, left[i]);
        sum += counts[i];
    }
    const auto best = [&](double sign, const auto& may) {  // the one that is owed most, or least
        std::size_t found = weights.size();
        for (std::size_t i = 0; i < weights.size(); ++i)
            if (weights[i] != 0 && may(i) &&
                (found == weights.size() || sign * (owed[i] - static_cast<double>(counts[i])) >
                                                sign * (owed[found] - static_cast<double>(counts[found]))))
                found = i;
        return found;
    };
    for (; sum < steps; ++sum) ++counts[best(1, [&](std::size_t i) { return counts[i] < left[i]; })];
    for (; sum > steps; --sum) --counts[best(-1, [&](std::size_t i) { return counts[i] > 0; })];
    for (std::size_t i = 0; i < weights.size(); ++i) owed[i] -= static_cast<double>(counts[i]);
    return counts;
}

}  // namespace detail

STRATA_INLINE std::vector<EpochPhase> epoch_phases(const std::vector<EpochShare>& shares) {
    std::vector<std::int64_t> left;
    std::vector<double> owed;
    for (const EpochShare& share : shares) {
        left.push_back(share.batches);
        owed.push_back(share.last_step > 0 ? 1 : 0);  // so that it is shown once at least
    }
    std::vector<EpochPhase> phases;
    for (std::int64_t step = 0;;) {
        std::int64_t end = step;  // at most: all that is left
        std::vector<double> weights(shares.size(), 0);
        const auto is_in = [&](std::size_t i) {
            return left[i] > 0 && (shares[i].last_step == 0 || step < shares[i].last_step);
        };
        for (std::size_t i = 0; i < shares.size(); ++i)
            if (is_in(i)) end += left[i];
        if (end == step) return phases;
        for (std::size_t i = 0; i < shares.size(); ++i)
            if (is_in(i) && shares[i].last_step > 0)
                end = std::min(end, detail::end_of_fall_phase(step, shares[i].last_step));
        const double middle = static_cast<double>(step + end) / 2;
        double all = 0;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            if (!is_in(i)) continue;
            weights[i] = shares[i].weight;
            if (shares[i].last_step > 0) weights[i] *= 1 - middle / static_cast<double>(shares[i].last_step);
            all += weights[i];
        }
        for (std::size_t i = 0; i < shares.size(); ++i) {  // until the first of them is used up
            if (weights[i] == 0) continue;
            const double lasts = std::ceil(static_cast<double>(left[i]) * (all / weights[i]) - 1e-6);
            if (lasts < static_cast<double>(end - step)) end = step + std::max<std::int64_t>(1, std::llround(lasts));
        }
        EpochPhase phase{end - step, detail::dealt(end - step, weights, left, owed)};
        for (std::size_t i = 0; i < shares.size(); ++i) left[i] -= phase.counts[i];
        step = end;
        phases.push_back(std::move(phase));
    }
}

}  // namespace strata::datasets
