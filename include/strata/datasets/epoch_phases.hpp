#pragma once
// strata/datasets/epoch_phases.hpp - how many batches of each data set come in which part of an epoch.

#include <cstdint>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::datasets {

/// A data set's part in an epoch.
struct EpochShare {
    std::int64_t batches = 0;    ///< that it has
    double weight = 1;           ///< how often it is drawn beside the others, above 0
    std::int64_t last_step = 0;  ///< the weight falls evenly from the epoch's begin to 0 at this step; 0: it stays
};

/// Steps of an epoch whose batches are shuffled together.
struct EpochPhase {
    std::int64_t steps = 0;
    std::vector<std::int64_t> counts;  ///< batches of each data set; they sum to `steps`
};

/// An epoch of data sets that are drawn by weights, as runs of steps in which the weights are the same: one ends where
/// a data set is used up, and the time in which a weight falls has `fall_phases` of equal length, with the mean weight
/// of each. In a phase every data set has its share of the steps, rounded so that nothing is lost from phase to phase.
///
/// Every data set whose weight stays shows all of its batches. One whose weight falls shows as many as it is drawn
/// until then, at least one and at most all; no step behind last_step is its own.
///
/// A pure function, without random numbers. Returns no phase without a step. Cost: data sets times phases, of which
/// there are at most about 1 + data sets + fall_phases * those whose weight falls.
[[nodiscard]] std::vector<EpochPhase> epoch_phases(const std::vector<EpochShare>& shares);
inline constexpr std::int64_t fall_phases = 16;

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/epoch_phases.ipp>
#endif
