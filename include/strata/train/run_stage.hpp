#pragma once
// strata/train/run_stage.hpp - RunStage: a part of a run that has a begin and an end, by the name that webhooks have for it.

#include <string_view>

namespace strata::train {

struct RunStage {
    std::string_view key;    ///< SimpleTuner's
    std::string_view label;  ///< for people
};

inline constexpr RunStage data_stage{"init_data_backend", "Finding the pictures"};
inline constexpr RunStage cache_stage{"init_vae_cache", "Filling the caches"};
inline constexpr RunStage model_stage{"init_load_base_model", "Loading the model"};
inline constexpr RunStage checkpoint_stage{"checkpoint_save", "Saving a checkpoint"};
inline constexpr RunStage weights_stage{"model_save", "Writing the weights"};

}  // namespace strata::train
