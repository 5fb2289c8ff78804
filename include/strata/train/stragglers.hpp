#pragma once
// strata/train/stragglers.hpp - Stragglers: which ranks are steadily slower than the others, by the times of their steps.

#include <cstddef>
#include <span>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::train {

/// What one step took of one rank, in seconds.
struct RankTimes {
    double work = 0;       ///< without the time in which it stood still for other ranks; NaN: not measured
    double data_wait = 0;  ///< of it, that for its batches
};

/// A rank that has become slower than the others, or no longer is. Medians of a window of steps, in seconds a step.
struct Straggler {
    int rank = 0;
    bool is_slow = true;  ///< false: it was named, and keeps up again
    double work = 0;
    double others = 0;  ///< the work of the rank in the middle of the others
    double data_wait = 0;
    double others_data_wait = 0;
    int steps = 0;  ///< of the window

    /// At least half of what it is slower by is that it waits longer for its batches.
    [[nodiscard]] bool waits_for_data() const noexcept { return data_wait - others_data_wait >= (work - others) / 2; }
};

/// A pure function of the times that it is given: equal on all ranks that give it equal times.
///
/// A rank is slow when the median of its work in the last `steps` steps is more than `factor` times that of the rank in the middle of
/// the others, and `least_excess` more. It is named once, and again only after it was below half of what makes it slow. Windows are looked at
/// every tenth part of their length; a median forgives single steps, such as those with a checkpoint.
class Stragglers {
public:
    static constexpr double least_excess = 0.005;  ///< seconds a step; less is noise of clocks and threads

    ///   factor  >= 1; 1 compares nothing
    ///   steps   >= 1, of a window
    Stragglers(double factor, int steps);

    /// A step of all ranks, in their order and as many each time. What has changed by it, in the order of ranks.
    [[nodiscard]] std::vector<Straggler> add(std::span<const RankTimes> ranks);

private:
    [[nodiscard]] std::vector<Straggler> judge();

    double factor_;
    std::size_t length_;                          // of the window
    std::size_t seen_ = 0;                        // steps in it and before
    std::vector<std::vector<RankTimes>> window_;  // by step modulo length_, then by rank
    std::vector<bool> is_slow_;                   // by rank
};

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/stragglers.ipp>
#endif
