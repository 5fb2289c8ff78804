#pragma once
// strata/adapters/saved_adapter.hpp - saved_adapter(): what of a model is adapters', under the names and with the metadata that other programs
// read.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/adapters/adapter_file.hpp>
#include <strata/adapters/layer_names.hpp>
#include <strata/adapters/targets.hpp>
#include <strata/core/inline.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/weights/save_weights.hpp>

namespace strata::adapters {

/// Where adapters go if nobody says otherwise: the name that diffusers looks for.
inline constexpr std::string_view adapter_file_name = "pytorch_lora_weights.safetensors";

/// What tensors do not tell of an adapter.
struct AdapterFacts {
    /// Of a kind of one's own: the name that its parameters have in PATH.KIND.*. They are written as `unet.PATH.KIND.*`, which load_weights() reads with that
    /// prefix. Empty: a LoRA or a LoKr, which names tell.
    std::string kind{};
    double alpha = 0;                                   ///< 0: each layer's rank
    std::vector<train::LayerOptions<double>> alphas{};  ///< of layers with one of their own, likewise
    double dropout = 0;                                 ///< of its inputs, in training
};

/// What a layer's scale is over its rank. 0: the rank, so that the scale is 1.
[[nodiscard]] double alpha_of(const AdapterFacts& facts, std::string_view path);

/// The facts of a kind with these options: the numbers that they have under these names.
///
///   by_layer  of layers with options of their own
template <class Kind>
[[nodiscard]] AdapterFacts facts_of(const typename Kind::Options& options,
                                    const std::vector<train::LayerOptions<typename Kind::Options>>& by_layer = {}) {
    AdapterFacts facts;
    if (Kind::name != "lora" && Kind::name != "lokr") facts.kind = std::string{Kind::name};
    if constexpr (requires { static_cast<double>(options.alpha); }) {
        facts.alpha = static_cast<double>(options.alpha);
        for (const auto& own : by_layer)
            facts.alphas.push_back({own.layers, static_cast<double>(own.options.alpha), own.also});
    }
    if constexpr (requires { static_cast<double>(options.dropout); })
        facts.dropout = static_cast<double>(options.dropout);
    return facts;
}

/// What a file says of the model that its adapters are for, as the ModelSpec of Stability AI has it.
struct ModelFacts {
    std::string
        architecture{};  ///< "stable-diffusion-v1", "stable-diffusion-xl-v1-base", "flux-1-dev". Empty: architecture_of()
    std::string title{};
    std::string resolution{};  ///< "1024x1024"
    std::string prediction{};  ///< "epsilon", "v"; empty of a flow
    std::string date{};        ///< ISO 8601. Empty, so that equal adapters are equal files: it is left out
};

struct SaveAdapterOptions {
    FileNaming naming = FileNaming::peft;  ///< or kohya, comfyui. LoKr has LyCORIS' names under any
    std::optional<ModelPart> part{};       ///< none: as the model's names tell
    bool lonely_text_encoder = false;      ///< kohya's `lora_te_` for the CLIP of a pipeline with one
    AdapterFacts facts{};
    ModelFacts model{};
    storage::SafetensorsMetadata metadata{};  ///< besides
};

struct SavedAdapter {
    std::vector<weights::SavedTensor> tensors;
    storage::SafetensorsMetadata metadata;
};

/// What ModelSpec calls the model with these layers. Empty: none that it has a name for, and files say nothing.
[[nodiscard]] std::string architecture_of(const std::vector<NamedLayer>& layers);

/// Whether a parameter is an adapter's, by its name: PATH.lora.down, PATH.lokr.w1 and the like.
[[nodiscard]] bool is_of_adapter(std::string_view parameter) noexcept;

/// The adapters among a model's parameters, for weights::save_weights(): its `tensors`, SaveOptions::metadata its `metadata`.
///
/// LoRA is written as PEFT's `unet.PATH.lora_A.weight` and `lora_B`, DoRA's magnitude as `lora_magnitude_vector`, its norms and not what stands beside
/// them while it is trained; or as kohya's `lora_unet_PATH.lora_down.weight`, `lora_up`, `dora_scale` and `alpha`. LoKr is written as
/// LyCORIS' `lycoris_PATH.lokr_w1` and so on. Metadata have `format`, ModelSpec, of PEFT's names `lora_adapter_metadata`, from which diffusers takes rank, alpha and
/// target modules, and of kohya's `ss_network_dim` and `ss_network_alpha`. Parameters have names and shapes; values are read when they are written. Local.
///
///   parameters  all of the model's, by name; the same on every rank
/// Throws bad_value for a naming that is not written, cloneofsimo's; bad_parameter where there are no adapters, one lacks a half, or a tensor is empty.
[[nodiscard]] SavedAdapter saved_adapter(const std::vector<weights::SavedTensor>& parameters,
                                         const SaveAdapterOptions& options = {});

/// The names of layers by which PEFT finds these and no others of a model: each is met by a path that is it, or ends with a dot and it.
///
///   adapted  paths of layers that have adapters
///   all      of all layers
[[nodiscard]] std::vector<std::string> target_modules(const std::vector<std::string>& adapted,
                                                      const std::vector<std::string>& all);

}  // namespace strata::adapters

#ifndef STRATA_COMPILED
#include <strata/adapters/impl/saved_adapter.ipp>
#endif
