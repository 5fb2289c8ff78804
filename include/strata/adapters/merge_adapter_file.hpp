#pragma once
// strata/adapters/merge_adapter_file.hpp - merge_adapter_file(): a model's weights as they are with an adapter, without the model being adapted.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/adapters/adapter_match.hpp>
#include <strata/adapters/layer_change.hpp>
#include <strata/core/inline.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/weight_match.hpp>
#include <strata/zero/unit_values.hpp>

namespace strata::adapters {

/// What merge_adapter_file() found.
struct MergedAdapterFile {
    FileNaming naming = FileNaming::peft;
    std::size_t layers = 0;          ///< of the model, whose weights are others now, or will be
    std::size_t of_other_parts = 0;  ///< layers of other models of the pipeline that the file has adapters of
};

/// The layers of a model that files may have adapters of: parameters `PATH.weight` of two or four dimensions, in the model's order.
[[nodiscard]] std::vector<NamedLayer> named_layers(const std::vector<weights::LoadTarget>& targets);
/// The same of a model that is not there: weights::wanted_weights().
[[nodiscard]] std::vector<NamedLayer> named_layers(const std::vector<weights::WantedWeight>& wanted);

/// merge_adapter_file() for what is no module.
MergedAdapterFile merge_into(const std::vector<weights::LoadTarget>& targets, const std::filesystem::path& file,
                             double strength, const AdapterFileOptions& options = {});

/// Adds the adapters of a file to the weights of a model:
///
///   auto unet = strata::in_units([] { return std::make_shared<models::Sd15Unet>(); });
///   weights::load_weights(*unet, weights::WeightFiles{"sd15/unet"});
///   adapters::merge_adapter_file(*unet, "pytorch_lora_weights.safetensors", 0.8);
///
/// LoRA, DoRA and LoKr under the names of diffusers and PEFT, kohya's trainer and cloneofsimo's library (docs/adapters.md); the file's names tell
/// which. Adapters for other models of the pipeline are passed over and counted. Several files may be merged one after the other. Sums are in fp32 (fp64 of a model in
/// fp64), 16 MiB of a weight at a time, and rounded once to the weight's type. Units that in_units() made stay without memory: the adapter is
/// added where an engine or make_whole() reads them, to the same bits. Local: each rank that makes the model calls it. Before an engine has the model.
///
///   strength  1: as the adapter was trained; 0: not at all; -1: it is taken away again, but for rounding, where it is a LoRA or a LoKr
/// Throws adapter_does_not_fit with all that does not fit, after which the model is as it was; bad_adapter_file for a file that has no adapter;
/// bad_value for a strength that is not finite; bad_parameter where an engine has the weights; what WeightFiles throws, io_failed.
template <class Module>
MergedAdapterFile merge_adapter_file(Module& model, const std::filesystem::path& file, double strength = 1,
                                     const AdapterFileOptions& options = {}) {
    return merge_into(weights::load_targets_of(model), file, strength, options);
}

/// The values of a unit's parameters with an adapter. What it reads ranges of, it reads rows of, in pieces.
class MergedValues final : public zero::UnitValues {
public:
    ///   changes     by number of parameter
    ///   parameters  the unit's
    ///   others      the values without the adapter
    ///   said        of the adapter and its strength, for description()
    MergedValues(std::map<std::size_t, LayerChange> changes, const std::vector<at::Tensor>& parameters,
                 std::shared_ptr<zero::UnitValues> others, std::string said);

    [[nodiscard]] bool reads_ranges() const noexcept override { return others_->reads_ranges(); }
    void read(std::size_t parameter, std::int64_t begin, const at::Tensor& values) override;
    void let_go() noexcept override { others_->let_go(); }
    [[nodiscard]] std::int64_t bytes_beside() const noexcept override;
    [[nodiscard]] std::string description() const override { return others_->description() + said_; }

private:
    std::map<std::size_t, LayerChange> changes_;
    std::map<std::size_t, at::ScalarType> types_;  // of the parameters that are changed
    std::shared_ptr<zero::UnitValues> others_;
    std::string said_;
};

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/merge_adapter_file.ipp>
#endif
