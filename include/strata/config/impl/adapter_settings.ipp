#pragma once
// strata/config/impl/adapter_settings.ipp - the keys of adapters, and the layers that names of targets stand for.

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <utility>

#include <strata/config/adapter_settings.hpp>
#include <strata/config/impl/key.ipp>
#include <strata/config/impl/lycoris_config.ipp>
#include <strata/core/error.hpp>

namespace strata::config {

namespace detail {

inline constexpr std::string_view no_decomposed_start =
    "it takes a part of the base's weights out of them, so that a file of the adapter fits no other copy of the model";
inline constexpr std::string_view no_control_networks = "there are no control networks";

inline std::vector<Choice<LoraInit>> lora_inits() {
    return {{"default", LoraInit::usual},
            {"gaussian", LoraInit::gaussian},
            {"loftq", LoraInit::usual, no_decomposed_start},
            {"olora", LoraInit::usual, no_decomposed_start},
            {"pissa", LoraInit::usual, no_decomposed_start}};
}

inline std::vector<Choice<FluxLoraTarget>> flux_lora_target_names() {
    using enum FluxLoraTarget;
    return {{"all", all},
            {"all+ffs", all_ffs},
            {"all+ffs+embedder", all_ffs_embedder},
            {"ai-toolkit", ai_toolkit},
            {"mmdit", mmdit},
            {"context", context},
            {"context+ffs", context_ffs},
            {"tiny", tiny},
            {"nano", nano},
            {"controlnet", all, no_control_networks},
            {"all+ffs+embedder+controlnet", all_ffs_embedder, no_control_networks}};
}

/// A word of `base_model_precision`.
struct PrecisionWord {
    std::string_view name;
    FrozenName kept = FrozenName::as_computed;
    std::string_view remark{};   ///< what is not quite the same
    std::string_view why_not{};  ///< of words that are refused
};

inline std::span<const PrecisionWord> precision_words() {
    using enum FrozenName;
    constexpr std::string_view as_nf4 =
        "four bits a weight as nf4 has them, with a scale for every 64; errors are smaller than those of int4";
    constexpr std::string_view with_activations =
        "what is computed stays in the run's number format: only weights are in int8";
    constexpr std::string_view no_fp8 =
        "there are no weights in fp8; int8-quanto takes as much, and its errors are smaller";
    constexpr std::string_view no_16_bits = "weights that are not quantised have 16 bits already, which is no_change";
    constexpr std::string_view no_other_bits = "weights are kept in 8 or 4 bits; the nearest below are nf4-bnb's";
    static constexpr std::array<PrecisionWord, 32> words{{
        {"no_change", as_computed},
        {"int8-quanto", int8},
        {"int8-torchao", int8},
        {"int8-sdnq", int8},
        {"uint8-sdnq", int8, "eight bits a weight, with signs and a scale for every row"},
        {"nf4-bnb", nf4},
        {"nf4-torchao", nf4},
        {"int4-quanto", nf4, as_nf4},
        {"int4-torchao", nf4, as_nf4},
        {"uint4-sdnq", nf4, as_nf4},
        {"int8dq-torchao", int8, with_activations},
        {"fp8-quanto", int8, {}, no_fp8},
        {"fp8uz-quanto", int8, {}, no_fp8},
        {"fp8-native", int8, {}, no_fp8},
        {"fp8-torchao", int8, {}, no_fp8},
        {"fp8-torchao-compile", int8, {}, no_fp8},
        {"fp8wo-torchao", int8, {}, no_fp8},
        {"fp8-int4-torchao", nf4, {}, no_fp8},
        {"fp8-transformerengine", int8, {}, no_fp8},
        {"fp8-sdnq", int8, {}, no_fp8},
        {"int8dq-int4-torchao", nf4, {}, "there are no activations in int8; int4-torchao keeps the same weights"},
        {"int16-sdnq", as_computed, {}, no_16_bits},
        {"uint16-sdnq", as_computed, {}, no_16_bits},
        {"fp16-sdnq", as_computed, {}, no_16_bits},
        {"int2-quanto", nf4, {}, no_other_bits},
        {"int6-sdnq", int8, {}, no_other_bits},
        {"int5-sdnq", int8, {}, no_other_bits},
        {"uint5-sdnq", int8, {}, no_other_bits},
        {"uint3-sdnq", nf4, {}, no_other_bits},
        {"uint2-sdnq", nf4, {}, no_other_bits},
        {"fp4-bnb", nf4, {}, "four bits are kept as nf4-bnb's, whose errors are smaller"},
        {"fp8-bnb", int8, {}, no_fp8},
    }};
    return words;
}

inline std::vector<Choice<FrozenName>> precision_choices() {
    std::vector<Choice<FrozenName>> choices;
    for (const PrecisionWord& one : precision_words()) choices.push_back({one.name, one.kept, one.why_not});
    return choices;
}

/// Modules of the ecosystem's models by their classes, and the layers in them.
struct LycorisModule {
    std::string_view name;
    bool is_of_flux = false;
    std::vector<std::string> layers;
};

inline const std::vector<LycorisModule>& lycoris_modules() {
    static const std::vector<LycorisModule> modules{
        {"Attention",
         true,
         {"attn.to_q", "attn.to_k", "attn.to_v", "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj",
          "attn.to_out.0", "attn.to_add_out"}},
        {"FluxAttention",
         true,
         {"attn.to_q", "attn.to_k", "attn.to_v", "attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj",
          "attn.to_out.0", "attn.to_add_out"}},
        {"FeedForward", true, {"ff.net.0.proj", "ff.net.2", "ff_context.net.0.proj", "ff_context.net.2"}},
        {"FluxTransformerBlock", true, {"transformer_blocks.*"}},
        {"FluxSingleTransformerBlock", true, {"single_transformer_blocks.*"}},
        {"Attention", false, {"to_q", "to_k", "to_v", "to_out.0"}},
        {"FeedForward", false, {"ff.net.0.proj", "ff.net.2"}},
        {"BasicTransformerBlock", false, {"*.transformer_blocks.*"}},
        {"Transformer2DModel", false, {"*.attentions.*"}},
        {"ResnetBlock2D", false, {"*.resnets.*"}},
        {"Downsample2D", false, {"*.downsamplers.*"}},
        {"Upsample2D", false, {"*.upsamplers.*"}},
    };
    return modules;
}

/// Patterns of layers' names with a number each, longest first: {"ff.net.2": 4}.
template <class Number>
std::vector<std::pair<std::string, Number>> read_pattern(const Value& value, const Range& range) {
    if (!value.is_object())
        value.refuse(Errc::bad_value, "is " + value.shown() + ", no object", R"(write {"ff.net.2": 4})");
    std::vector<std::pair<std::string, Number>> found;
    for (const auto& [pattern, one] : value.json().items()) {
        const Value number{one, value.source(), value.key() + "." + pattern};
        if (!is_name_pattern(pattern))
            number.refuse(Errc::unsupported_key, "has a regular expression as its name",
                          "write names of layers, with * for any text: transformer_blocks.*.attn.to_q");
        Number own{};
        if constexpr (std::is_same_v<Number, double>)
            own = number.number();
        else
            own = number.integer();
        check_range(number, static_cast<double>(own), range);
        found.emplace_back(pattern, own);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    return found;
}

inline void add_all(std::vector<std::string>& to, const std::vector<std::string>& more) {
    for (const std::string& one : more)
        if (std::find(to.begin(), to.end(), one) == to.end()) to.push_back(one);
}

}  // namespace detail

STRATA_INLINE AdapterName AdapterSettings::kind() const noexcept {
    if (!is_on()) return AdapterName::none;
    const bool is_lokr = library == AdapterLibrary::lycoris && lycoris.algo == LycorisAlgo::lokr;
    return is_lokr ? AdapterName::lokr : AdapterName::lora;
}

STRATA_INLINE const Schema<AdapterSettings>& adapter_schema() {
    using A = AdapterSettings;
    static const Schema<A> schema = [] {
        Schema<A> s;
        const std::string only = ", of `model_type` lora";
        s.choice<ModelType>(
            "model_type", &A::model_type, {{"full", ModelType::full}, {"lora", ModelType::lora}},
            "What is trained: every weight, or an adapter over weights that stay; null: all, or what the "
            "program composes");
        s.choice<AdapterLibrary>(
            "lora_type", &A::library, {{"standard", AdapterLibrary::standard}, {"lycoris", AdapterLibrary::lycoris}},
            "`standard`: a LoRA as PEFT has it (`Adapter<Lora>`); `lycoris`: what `lycoris_config` says" + only);
        s.integer("lora_rank", &A::rank, {1, 65536}, "Width between the two matrices of a LoRA");
        s.number("lora_alpha", &A::alpha, {1e-6, 1e9},
                 "What a LoRA adds is scaled by this / `lora_rank`; null: not at all");
        s.number("lora_dropout", &A::dropout, {0, 0.999}, "Share of a LoRA's input that is left out, in training");
        s.choice<LoraInit>("lora_init_type", &A::init, detail::lora_inits(),
                           "What the first matrix of a LoRA begins with: uniform or normal random numbers");
        s.flag("use_dora", &A::use_dora, "DoRA: the rows of a weight have their norms trained beside the LoRA");
        s.texts(
            "peft_lora_target_modules", &A::targets,
            "Layers that get a LoRA: whole names, last steps of names (`to_q`, `attn.to_out.0`), or patterns with `*`; "
            "empty: those of `flux_lora_target`, or `to_k`, `to_q`, `to_v` and `to_out.0` of sdxl and sd15");
        s.custom(
            "lora_rank_pattern", "object", "{}",
            "Layers whose rank is another, by patterns of their names: {\"ff.net.2\": 4}; of several that fit, the "
            "longest counts" +
                only,
            [](A& settings, const Value& value) {
                settings.rank_pattern = detail::read_pattern<std::int64_t>(value, {1, 65536});
            });
        s.custom("lora_alpha_pattern", "object", "{}", "Likewise of `lora_alpha`" + only,
                 [](A& settings, const Value& value) {
                     settings.alpha_pattern = detail::read_pattern<double>(value, {1e-6, 1e9});
                 });
        s.texts("lora_exclude_modules", &A::excluded, "Layers among these that get none");
        s.choice<FluxLoraTarget>("flux_lora_target", &A::flux_target, detail::flux_lora_target_names(),
                                 "Which layers of flux get a LoRA; [docs/adapters.md](adapters.md) lists them");
        s.text("lycoris_config", &A::lycoris_file,
               "JSON file of LyCORIS' arguments, with `lora_type` lycoris: `algo` lokr, or locon");
        s.text("init_lora", &A::init_file, "File of an adapter that training begins with, of the same layers and rank");
        s.choice<LoraFormat>(
            "lora_format", &A::format,
            {{"diffusers", LoraFormat::diffusers}, {"comfyui", LoraFormat::comfyui}, {"kohya", LoraFormat::kohya}},
            "Names in pytorch_lora_weights.safetensors: PEFT's, or those that ComfyUI or kohya's scripts read");
        s.choice<FrozenName>(
            "base_model_precision", &A::base, detail::precision_choices(),
            "What the weights under an adapter are kept in: as they are computed with, int8 with a scale a row, or nf4; needs "
            "`ZeroStage<3>` where it is not `no_change`");
        return s;
    }();
    return schema;
}

STRATA_INLINE std::string_view frozen_remark(std::string_view precision) {
    for (const detail::PrecisionWord& one : detail::precision_words())
        if (one.name == precision) return one.remark;
    return {};
}

STRATA_INLINE std::vector<std::string> flux_lora_targets(FluxLoraTarget target) {
    using enum FluxLoraTarget;
    const std::vector<std::string> image{"to_k", "to_q", "to_v", "to_out.0"};
    const std::vector<std::string> text{"add_k_proj", "add_q_proj", "add_v_proj", "to_add_out"};
    const std::vector<std::string> text_ff{"ff_context.net.0.proj", "ff_context.net.2"};
    std::vector<std::string> layers;
    switch (target) {
        case mmdit:
            return image;
        case context:
            return text;
        case context_ffs:
            layers = text;
            detail::add_all(layers, text_ff);
            return layers;
        case tiny:
            return {"single_transformer_blocks.7.proj_out", "single_transformer_blocks.20.proj_out"};
        case nano:
            return {"single_transformer_blocks.7.proj_out"};
        case all:
        case all_ffs:
        case all_ffs_embedder:
        case ai_toolkit:
            break;
    }
    layers = image;
    detail::add_all(layers, text);
    if (target == all) return layers;
    detail::add_all(layers, {"ff.net.0.proj", "ff.net.2"});
    detail::add_all(layers, text_ff);
    detail::add_all(layers, {"proj_mlp", "proj_out"});
    if (target == all_ffs_embedder) detail::add_all(layers, {"x_embedder"});
    if (target == ai_toolkit) detail::add_all(layers, {"norm.linear", "norm1.linear", "norm1_context.linear"});
    return layers;
}

STRATA_INLINE std::vector<std::string> lycoris_layers(std::string_view module, ModelFamily family) {
    const bool is_flux = family == ModelFamily::flux || family == ModelFamily::small;
    std::string there;
    for (const detail::LycorisModule& one : detail::lycoris_modules()) {
        if (one.is_of_flux != is_flux) continue;
        if (one.name == module) return one.layers;
        there += (there.empty() ? "" : ", ") + std::string{one.name};
    }
    throw Error{Errc::bad_value,
                "the LyCORIS configuration names the module '" + std::string{module} + "', which " +
                    std::string{name_of(family)} + " does not have",
                "name one of " + there + ", or layers in 'target_name'"};
}

STRATA_INLINE std::vector<LycorisLayers> lycoris_exceptions(const LycorisConfig& lycoris, ModelFamily family) {
    std::vector<LycorisLayers> found;
    for (const LycorisExceptions& one : lycoris.exceptions)
        if (!one.is_class) found.push_back({{one.of}, lycoris.with(one)});
    for (const LycorisExceptions& one : lycoris.exceptions)  // an unknown class is an error, wherever it stands
        if (one.is_class) static_cast<void>(lycoris_layers(one.of, family));
    const bool is_flux = family == ModelFamily::flux || family == ModelFamily::small;
    for (const detail::LycorisModule& module : detail::lycoris_modules())  // which has them from the inside out
        for (const LycorisExceptions& one : lycoris.exceptions)
            if (one.is_class && module.is_of_flux == is_flux && module.name == one.of)
                found.push_back({module.layers, lycoris.with(one)});
    return found;
}

STRATA_INLINE AdapterTargets adapter_targets(const AdapterSettings& settings, ModelFamily family) {
    AdapterTargets found{settings.targets, settings.excluded};
    if (settings.library == AdapterLibrary::lycoris) {
        found.targets = settings.lycoris.names;
        for (const std::string& module : settings.lycoris.modules)
            detail::add_all(found.targets, lycoris_layers(module, family));
        detail::add_all(found.excluded, settings.lycoris.excluded);
        return found;
    }
    if (!found.targets.empty()) return found;
    const bool is_flux = family == ModelFamily::flux || family == ModelFamily::small;
    found.targets = is_flux ? flux_lora_targets(settings.flux_target)
                            : std::vector<std::string>{"to_k", "to_q", "to_v", "to_out.0"};
    return found;
}

}  // namespace strata::config
