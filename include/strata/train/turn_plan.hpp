#pragma once
// strata/train/turn_plan.hpp - TurnPlan: whose step is next where several trainers take turns.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::train {

/// Rounds in which every trainer has its steps, one trainer after the other. A position is the number of steps that all of them
/// have done together; it says how many each has done, and the other way round. Pure; the same on every rank.
class TurnPlan {
public:
    ///   steps  of each trainer in a round, each >= 1
    explicit TurnPlan(std::vector<std::int64_t> steps);

    [[nodiscard]] std::int64_t steps_a_round() const noexcept { return round_; }
    /// The trainer whose step comes after `position`.
    [[nodiscard]] std::size_t whose(std::int64_t position) const;
    /// Steps that a trainer has done at a position.
    [[nodiscard]] std::int64_t done(std::size_t trainer, std::int64_t position) const;

    /// The last position before `before` at which every trainer has done no step, or as many as it has a checkpoint of. Position
    /// 0 is none.
    ///
    ///   saved  by trainer: steps, ascending
    [[nodiscard]] std::optional<std::int64_t> newest_common(std::span<const std::vector<std::int64_t>> saved,
                                                            std::int64_t before) const;

private:
    std::vector<std::int64_t> steps_;
    std::int64_t round_ = 0;
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/turn_plan.ipp>
#endif
