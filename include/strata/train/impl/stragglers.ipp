#pragma once
// strata/train/impl/stragglers.ipp - medians of a window, compared between ranks.

#include <algorithm>
#include <cmath>

#include <strata/train/stragglers.hpp>

namespace strata::train {
namespace detail {

/// Of an even number of values the mean of the two in the middle. At least one value.
inline double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

inline double median_without(const std::vector<double>& values, std::size_t left_out) {
    std::vector<double> others = values;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left_out));
    return median_of(std::move(others));
}

}  // namespace detail

STRATA_INLINE Stragglers::Stragglers(double factor, int steps)
    : factor_{factor}, length_{static_cast<std::size_t>(std::max(1, steps))} {}

STRATA_INLINE std::vector<Straggler> Stragglers::add(std::span<const RankTimes> ranks) {
    if (factor_ <= 1 || ranks.size() < 2) return {};
    const auto is_measured = [](const RankTimes& times) { return std::isfinite(times.work); };
    if (!std::all_of(ranks.begin(), ranks.end(), is_measured)) return {};
    window_.resize(std::min(seen_ + 1, length_));
    window_[seen_ % length_].assign(ranks.begin(), ranks.end());
    is_slow_.resize(ranks.size());
    ++seen_;
    const std::size_t between_looks = std::max<std::size_t>(1, length_ / 10);
    if (seen_ < length_ || (seen_ - length_) % between_looks != 0) return {};
    return judge();
}

STRATA_INLINE std::vector<Straggler> Stragglers::judge() {
    const auto medians = [this](double RankTimes::*time) {
        std::vector<double> of_ranks;
        for (std::size_t rank = 0; rank < is_slow_.size(); ++rank) {
            std::vector<double> of_steps;
            for (const auto& step : window_) of_steps.push_back(step[rank].*time);
            of_ranks.push_back(detail::median_of(std::move(of_steps)));
        }
        return of_ranks;
    };
    const std::vector<double> work = medians(&RankTimes::work), data_wait = medians(&RankTimes::data_wait);
    std::vector<Straggler> changed;
    for (std::size_t rank = 0; rank < work.size(); ++rank) {
        Straggler found{.rank = static_cast<int>(rank),
                        .work = work[rank],
                        .others = detail::median_without(work, rank),
                        .data_wait = data_wait[rank],
                        .others_data_wait = detail::median_without(data_wait, rank),
                        .steps = static_cast<int>(length_)};
        const double bound = std::max((factor_ - 1) * found.others, least_excess) * (is_slow_[rank] ? 0.5 : 1);
        found.is_slow = found.work - found.others > bound;
        if (found.is_slow == is_slow_[rank]) continue;
        is_slow_[rank] = found.is_slow;
        changed.push_back(found);
    }
    return changed;
}

}  // namespace strata::train
