#pragma once
// tools/sample/sample_model.hpp - SampleModel: what MODEL of `strata sample` is, and where the denoiser's weights come from.

#include <cstdint>
#include <filesystem>
#include <optional>

#include <strata/config/model_settings.hpp>

#include "sample_settings.hpp"

namespace strata::tools {

struct SampleModel {
    config::ModelSettings settings;

    // Of these one at most; without them the weights are the model's own.
    std::filesystem::path weights;     ///< files of the ecosystem
    std::filesystem::path checkpoint;  ///< as train::find_checkpoint() takes it
    std::optional<std::int64_t> step;  ///< of its checkpoints; none: the newest

    std::filesystem::path adapter;  ///< that the run trained and left, over the model's own weights; empty: none
};

/// What the settings name: a pipeline's folder, in the ecosystem's layout; a run's output directory, with what the run recorded of its model
/// (config/model_record.hpp), or one of its checkpoints; a trainer's configuration, or the folder it is in. Reads no weights.
///
/// Throws bad_reference for a path that is none of these, or not there; bad_argument for flags about checkpoints of what has none; what
/// reading a configuration throws.
[[nodiscard]] SampleModel sample_model(const SampleSettings& settings);

}  // namespace strata::tools
