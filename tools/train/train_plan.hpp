#pragma once
// tools/train/train_plan.hpp - TrainPlan: which trainer a configuration gets, and what was understood of it, as text.

#include <cstddef>
#include <string>

#include <strata/config/intent.hpp>

#include "train_settings.hpp"

namespace strata::tools {

struct TrainPlan {
    config::Intent asked;    ///< what a trainer is chosen by; without what is decided when the program runs
    std::size_t chosen = 0;  ///< of TrainCompositions
    int recompute = 0;       ///< units computed again: 0 none, 1 all, N one of N
    std::string text;        ///< every key of every file, the trainer, the batch; for a terminal
};

/// Throws Errc::no_composition, with the keys to change and the list of what there is; bad_value for a batch that so many
/// ranks cannot have.
[[nodiscard]] TrainPlan plan_training(const TrainSettings& settings, int ranks);

}  // namespace strata::tools
