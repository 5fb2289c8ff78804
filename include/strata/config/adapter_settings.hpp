#pragma once
// strata/config/adapter_settings.hpp - AdapterSettings: the adapter that a configuration trains in place of a model's weights, and what its base is kept in.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/config/intent.hpp>
#include <strata/config/lycoris_config.hpp>
#include <strata/config/model_settings.hpp>
#include <strata/config/schema.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// What is trained (`model_type`).
enum class ModelType : std::uint8_t {
    full,  ///< every weight
    lora,  ///< an adapter, of whatever kind
};

/// Whose adapters these are (`lora_type`).
enum class AdapterLibrary : std::uint8_t {
    standard,  ///< PEFT's LoRA and DoRA
    lycoris,   ///< as `lycoris_config` says
};

/// What the first of a LoRA's two matrices begins with (`lora_init_type`); the second is zero.
enum class LoraInit : std::uint8_t {
    usual,     ///< as a linear layer of libtorch begins: uniform
    gaussian,  ///< normal, of deviation 1 / rank
};

/// Names of tensors in files of adapters (`lora_format`).
enum class LoraFormat : std::uint8_t {
    diffusers,  ///< PEFT's: "unet.LAYER.lora_A.weight"
    comfyui,    ///< Flux: "diffusion_model.LAYER.lora_A.weight" with ".alpha"; U-Nets: kohya's
    kohya,      ///< "lora_unet_LAYER.lora_down.weight"
};

/// Which layers of a Flux have a LoRA (`flux_lora_target`); see flux_lora_targets().
enum class FluxLoraTarget : std::uint8_t {
    all,
    all_ffs,
    all_ffs_embedder,
    ai_toolkit,
    mmdit,
    context,
    context_ffs,
    tiny,
    nano,
};

/// An adapter as a trainer's configuration says it; names and meanings of keys are SimpleTuner's where it has them. What
/// there is of it in a run says kind(): without model_type lora the rest is of no effect.
struct AdapterSettings {
    std::optional<ModelType> model_type;  ///< `model_type`; nullopt: full, or what a program composes
    AdapterLibrary library = AdapterLibrary::standard;

    std::int64_t rank = 16;
    std::optional<double> alpha;  ///< nullopt: rank, so that what is added is not scaled
    double dropout = 0.1;         ///< of what goes into a LoRA's first matrix
    bool use_dora = false;
    LoraInit init = LoraInit::usual;
    std::vector<std::string> targets;  ///< `peft_lora_target_modules`; empty: flux_target, or the family's own
    std::vector<std::string> excluded;
    FluxLoraTarget flux_target = FluxLoraTarget::all;
    /// `lora_rank_pattern`, `lora_alpha_pattern`: of layers whose rank or alpha is another; of patterns that fit a layer, the longest.
    std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
    std::vector<std::pair<std::string, double>> alpha_pattern;

    std::filesystem::path lycoris_file = "config/lycoris_config.json";
    LycorisConfig lycoris;  ///< what lycoris_file says

    std::filesystem::path init_file;  ///< `init_lora`: the adapter begins with these weights; empty: with its kind's
    LoraFormat format = LoraFormat::diffusers;
    std::optional<FrozenName> base;  ///< `base_model_precision`; nullopt: not said

    [[nodiscard]] bool is_on() const noexcept { return model_type == ModelType::lora; }
    /// AdapterName::none unless is_on().
    [[nodiscard]] AdapterName kind() const noexcept;
};

/// The keys of AdapterSettings.
[[nodiscard]] const Schema<AdapterSettings>& adapter_schema();

/// Words of `base_model_precision` that are kept in another form than theirs, with what is different: "int4-quanto".
/// Empty: none, and for words that are taken as they are.
[[nodiscard]] std::string_view frozen_remark(std::string_view precision);

/// Names of layers that `flux_lora_target` stands for, as patterns of adapters::TargetOptions; the order is PEFT's.
[[nodiscard]] std::vector<std::string> flux_lora_targets(FluxLoraTarget target);

/// The layers in modules of a class as LyCORIS calls it ("Attention"), as patterns. Throws Errc::bad_value for one that the family does
/// not have, with those that it has.
[[nodiscard]] std::vector<std::string> lycoris_layers(std::string_view module, ModelFamily family);

/// An exception of LyCORIS' and the layers that it is for, as patterns.
struct LycorisLayers {
    std::vector<std::string> layers;
    LycorisConfig arguments;
};
/// Those of a file, the first that fits a layer being the layer's: names, then classes, those inside others first. Throws Errc::bad_value as
/// lycoris_layers() does.
[[nodiscard]] std::vector<LycorisLayers> lycoris_exceptions(const LycorisConfig& lycoris, ModelFamily family);

/// The layers that get an adapter, and those of them that do not, as patterns of adapters::TargetOptions.
struct AdapterTargets {
    std::vector<std::string> targets;
    std::vector<std::string> excluded;
    friend bool operator==(const AdapterTargets&, const AdapterTargets&) = default;
};
/// Those of a configuration, once its model is known: the attention's projections where nothing else is said. Throws Errc::bad_value
/// for a module of LyCORIS' that the family does not have.
[[nodiscard]] AdapterTargets adapter_targets(const AdapterSettings& settings, ModelFamily family);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/adapter_settings.ipp>
#endif
