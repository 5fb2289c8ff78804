#pragma once
// strata/train/impl/turn_plan.ipp - the arithmetic of rounds.

#include <algorithm>
#include <utility>

#include <strata/train/turn_plan.hpp>

namespace strata::train {

STRATA_INLINE TurnPlan::TurnPlan(std::vector<std::int64_t> steps) : steps_{std::move(steps)} {
    for (const std::int64_t count : steps_) round_ += count;
}

STRATA_INLINE std::size_t TurnPlan::whose(std::int64_t position) const {
    std::int64_t in_round = position % round_;
    std::size_t trainer = 0;
    while (in_round >= steps_[trainer]) in_round -= steps_[trainer++];
    return trainer;
}

STRATA_INLINE std::int64_t TurnPlan::done(std::size_t trainer, std::int64_t position) const {
    std::int64_t in_round = position % round_;
    for (std::size_t i = 0; i < trainer; ++i) in_round -= steps_[i];
    return position / round_ * steps_[trainer] + std::clamp<std::int64_t>(in_round, 0, steps_[trainer]);
}

STRATA_INLINE std::optional<std::int64_t> TurnPlan::newest_common(std::span<const std::vector<std::int64_t>> saved,
                                                                  std::int64_t before) const {
    const auto has = [&](std::size_t trainer, std::int64_t step) {
        return step == 0 || std::binary_search(saved[trainer].begin(), saved[trainer].end(), step);
    };
    for (std::size_t i = 0; i < steps_.size(); ++i) {  // no later than the newest checkpoint of any
        const std::int64_t newest = saved[i].empty() ? 0 : saved[i].back();
        before = std::min(before, (newest / steps_[i] + 1) * round_ + 1);
    }
    for (std::int64_t position = before - 1; position > 0; --position) {
        bool common = true;
        for (std::size_t i = 0; common && i < steps_.size(); ++i) common = has(i, done(i, position));
        if (common) return position;
    }
    return std::nullopt;
}

}  // namespace strata::train
