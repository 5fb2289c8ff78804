#pragma once
// strata/train/checkpoint_weights.hpp - a run's checkpoint becomes a model's weights, without the trainer that wrote it.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/checkpoint/manifest.hpp>
#include <strata/core/inline.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/weight_files.hpp>
#include <strata/zero/in_units.hpp>

namespace strata::train {

/// Which of the weights that a checkpoint has.
enum class CheckpointWeights : std::uint8_t {
    parameters,  ///< what the model computed with, in its own type: model.safetensors
    masters,     ///< of what was trained the fp32 values that the optimizer keeps; of the rest its parameters
    average,     ///< the moving average, in the model's type: model_ema.safetensors
};

/// A checkpoint that was looked at and is whole, as far as those weights go.
struct FoundCheckpoint {
    std::filesystem::path folder;
    checkpoint::Manifest manifest;
    CheckpointWeights which = CheckpointWeights::parameters;
    std::vector<std::string> notes{};  ///< a sentence for each newer one that was passed over
};

/// The newest checkpoint of a run that is whole, whatever stage and number of ranks wrote it, or the one of a step. Reads what is needed for
/// these weights once, for its check sum. Nothing is renamed or removed: the run may be going on.
///
///   place  an output directory, its folder `checkpoints`, or the folder of one checkpoint
///   step   none: the newest
/// Local. Throws not_found where there is none, or none of that step; corrupt_checkpoint where none is whole; checkpoint_mismatch where it was
/// written without a moving average, and that is wanted.
[[nodiscard]] FoundCheckpoint find_checkpoint(const std::filesystem::path& place, std::optional<std::int64_t> step = {},
                                              CheckpointWeights which = CheckpointWeights::parameters);

namespace detail {

/// Over tensors that have memory.
void read_masters(const std::vector<weights::LoadTarget>& targets, const FoundCheckpoint& found);
/// The file with all parameters and buffers.
[[nodiscard]] std::filesystem::path model_file_of(const FoundCheckpoint& found);

}  // namespace detail

/// Gives a model, made as the run's was, the weights of a checkpoint; one that in_units() made is whole then.
///
///   auto model = std::make_shared<Model>(options);
///   train::load_checkpoint(*model, train::find_checkpoint("output"));
///
/// One tensor is in memory beside the model, and none where types agree. Local. Throws weights_do_not_fit, which lists all that differs;
/// corrupt_checkpoint, io_failed.
template <class Module>
void load_checkpoint(Module& model, const FoundCheckpoint& found) {
    weights::load_weights(model, weights::WeightFiles{detail::model_file_of(found)});
    make_whole(model);
    if (found.which == CheckpointWeights::masters) detail::read_masters(weights::load_targets_of(model), found);
}

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/checkpoint_weights.ipp>
#endif
