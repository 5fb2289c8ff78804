#pragma once
// strata/train/checkpoint_adapter.hpp - the adapters of a run's checkpoint change a model's weights, without the trainer that wrote it.

#include <filesystem>
#include <vector>

#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/core/inline.hpp>
#include <strata/train/checkpoint_weights.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/zero/in_units.hpp>

namespace strata::train {

/// Whether a checkpoint holds adapters and not the weights that they were trained over.
[[nodiscard]] bool holds_adapters_alone(const FoundCheckpoint& found);

namespace detail {

/// Whether adapters are DoRA's, whose magnitudes are multiples of the norms of the model's weights, and in files those norms.
[[nodiscard]] bool has_magnitudes(const FoundCheckpoint& found);

/// The adapters of a checkpoint as a file that other programs read, in a temporary folder of its own.
class CheckpointAdapterFile {
public:
    ///   targets  of the model; in memory where has_magnitudes()
    CheckpointAdapterFile(const FoundCheckpoint& found, const std::vector<weights::LoadTarget>& targets);
    CheckpointAdapterFile(const CheckpointAdapterFile&) = delete;
    CheckpointAdapterFile& operator=(const CheckpointAdapterFile&) = delete;
    ~CheckpointAdapterFile();
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

private:
    std::filesystem::path path_;
};

}  // namespace detail

/// Adds a checkpoint's adapters, LoRA, DoRA or LoKr, to the weights of a model that has none: those that the run began with. Units that
/// in_units() made stay without memory, as merge_adapter_file() leaves them, but those of a DoRA: the model is whole then.
///
///   weights::load_weights(*unet, weights::WeightFiles{"sdxl/unet"});
///   const auto found = train::find_checkpoint("output", {}, train::CheckpointWeights::average);
///   if (train::holds_adapters_alone(found)) train::merge_checkpoint_adapter(*unet, found);
///
/// Sums are merge_adapter_file()'s. A run over a quantised base computed with the quantised weights, this one with those that are there. The adapters
/// are written to a file below TMPDIR on the way, which is removed. Local. Throws adapter_does_not_fit; checkpoint_mismatch for adapters of a kind of one's own,
/// where the checkpoint does not say their alpha, and where more than adapters was trained; corrupt_checkpoint, io_failed, no_space.
template <class Module>
adapters::MergedAdapterFile merge_checkpoint_adapter(Module& model, const FoundCheckpoint& found) {
    if (detail::has_magnitudes(found)) make_whole(model);
    const detail::CheckpointAdapterFile file{found, weights::load_targets_of(model)};
    return adapters::merge_adapter_file(model, file.path());
}

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/checkpoint_adapter.ipp>
#endif
