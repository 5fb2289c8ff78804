#pragma once
// strata/adapters/impl/saved_adapter.ipp - parameters of adapters become tensors of files.

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <nlohmann/json.hpp>

#include <strata/adapters/impl/adapter_file.ipp>
#include <strata/adapters/impl/layer_names.ipp>
#include <strata/adapters/impl/magnitudes.ipp>
#include <strata/adapters/saved_adapter.hpp>
#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>

namespace strata::adapters {

namespace detail {

/// A parameter of an adapter: what its name ends with, and what it is called in files.
struct AdapterParameter {
    std::string_view ending;
    std::string_view peft;
    std::string_view kohya;
};
inline constexpr std::array<AdapterParameter, 10> adapter_parameters{{
    {".lora.down", ".lora_A.weight", ".lora_down.weight"},
    {".lora.up", ".lora_B.weight", ".lora_up.weight"},
    {".lora.magnitude", ".lora_magnitude_vector", ".dora_scale"},
    {".lokr.w1", "", ".lokr_w1"},
    {".lokr.w1_a", "", ".lokr_w1_a"},
    {".lokr.w1_b", "", ".lokr_w1_b"},
    {".lokr.w2", "", ".lokr_w2"},
    {".lokr.w2_a", "", ".lokr_w2_a"},
    {".lokr.w2_b", "", ".lokr_w2_b"},
    {".lokr.t2", "", ".lokr_t2"},
}};

inline const AdapterParameter* adapter_parameter(std::string_view name) noexcept {
    for (const AdapterParameter& known : adapter_parameters) {
        if (name.ends_with(known.ending)) return &known;
    }
    return nullptr;
}

/// The parameters of one layer's adapter, by their endings.
using OfLayer = std::map<std::string_view, const weights::SavedTensor*>;

inline const weights::SavedTensor* part_of_adapter(const OfLayer& layer, std::string_view ending) {
    const auto found = layer.find(ending);
    return found == layer.end() ? nullptr : found->second;
}
inline bool is_lokr(const OfLayer& layer) { return !layer.contains(".lora.down") && !layer.contains(".lora.up"); }

/// What alpha is divided by. 0: of a LoKr of whole factors.
inline std::int64_t rank_of_layer(const OfLayer& layer) {
    for (const char* ending : {".lora.down", ".lokr.w2_b", ".lokr.w1_b"}) {
        if (const auto* const found = part_of_adapter(layer, ending)) return found->tensor.size(0);
    }
    return 0;
}

inline void check_layer(const std::string& path, const OfLayer& layer) {
    const auto refuse = [&](const std::string& what) {
        throw Error{Errc::bad_parameter, "the adapter of the layer " + path + ' ' + what + ", and cannot be written",
                    "register an adapter's parameters as adapters/lora.hpp and adapters/lokr.hpp do"};
    };
    for (const auto& [ending, parameter] : layer) {
        if (parameter->tensor.numel() == 0) refuse("has an empty tensor " + std::string{ending.substr(1)});
    }
    if (is_lokr(layer)) {
        if (!layer.contains(".lokr.w1") && !layer.contains(".lokr.w1_a")) refuse("has no lokr.w1");
        if (!layer.contains(".lokr.w2") && !layer.contains(".lokr.w2_a")) refuse("has no lokr.w2");
    } else if (!layer.contains(".lora.down") || !layer.contains(".lora.up")) {
        refuse("has one half of a pair, lora.down and lora.up");
    }
}

inline std::string number_text(double value) { return OptionCheck::shown(value); }

inline void add_model_spec(storage::SafetensorsMetadata& metadata, const ModelFacts& model,
                           const std::vector<NamedLayer>& layers) {
    const std::string architecture = model.architecture.empty() ? architecture_of(layers) : model.architecture;
    if (architecture.empty()) return;
    metadata["modelspec.sai_model_spec"] = "1.0.1";
    metadata["modelspec.architecture"] = architecture + "/lora";
    metadata["modelspec.implementation"] = "diffusers";
    metadata["modelspec.title"] = model.title.empty() ? "LoRA" : model.title;
    const auto add = [&](const char* key, const std::string& value) {
        if (!value.empty()) metadata[key] = value;
    };
    add("modelspec.resolution", model.resolution);
    add("modelspec.prediction_type", model.prediction);
    add("modelspec.date", model.date);
}

/// What a layer's product is scaled by, times its rank.
inline double alpha_or_rank(const AdapterFacts& facts, std::string_view path, std::int64_t rank) {
    const double said = alpha_of(facts, path);
    return said == 0 || rank == 0 ? static_cast<double>(std::max<std::int64_t>(rank, 1)) : said;
}

/// The pattern by which PEFT finds this layer alone: its path, which is anchored where another one ends with it. Before 0.15 PEFT took
/// no anchor, so that it stands only where it has to.
inline std::string pattern_of_layer(const std::string& path, const std::vector<std::string>& all) {
    const bool is_ending =
        std::any_of(all.begin(), all.end(), [&](const std::string& one) { return one.ends_with("." + path); });
    return (is_ending ? "^" : "") + path;
}

/// PEFT's LoraConfig, as diffusers puts it into files.
inline std::string peft_config(const std::map<std::string, OfLayer>& layers, const std::vector<std::string>& all,
                               const AdapterFacts& facts, ModelPart part) {
    std::map<std::int64_t, std::size_t> ranks;
    std::vector<std::string> adapted;
    bool uses_dora = false;
    for (const auto& [path, layer] : layers) {
        ++ranks[rank_of_layer(layer)];
        adapted.push_back(path);
        uses_dora = uses_dora || layer.contains(".lora.magnitude");
    }
    const auto most =
        std::max_element(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::int64_t rank = most->first;
    nlohmann::json config{{"r", rank},
                          {"lora_alpha", facts.alpha == 0 ? static_cast<double>(rank) : facts.alpha},
                          {"lora_dropout", facts.dropout},
                          {"bias", "none"},
                          {"use_dora", uses_dora},
                          {"target_modules", target_modules(adapted, all)},
                          {"rank_pattern", nlohmann::json::object()},
                          {"alpha_pattern", nlohmann::json::object()}};
    for (const auto& [path, layer] : layers) {
        const std::int64_t own_rank = rank_of_layer(layer);
        const double alpha = alpha_or_rank(facts, path, own_rank);
        const std::string pattern = pattern_of_layer(path, all);
        if (own_rank != rank) config["rank_pattern"][pattern] = own_rank;
        if (alpha != config["lora_alpha"].get<double>()) config["alpha_pattern"][pattern] = alpha;
    }
    nlohmann::json named;
    for (const auto& [key, value] : config.items()) named[peft_name(key, part)] = value;
    return named.dump(2);
}

}  // namespace detail

STRATA_INLINE double alpha_of(const AdapterFacts& facts, std::string_view path) {
    const double* const own = own_options(facts.alphas, path);
    return own == nullptr ? facts.alpha : *own;
}

STRATA_INLINE bool is_of_adapter(std::string_view parameter) noexcept {
    return detail::adapter_parameter(parameter) != nullptr;
}

STRATA_INLINE std::string architecture_of(const std::vector<NamedLayer>& layers) {
    bool is_guided = false;
    std::string found;
    for (const NamedLayer& layer : layers) {
        if (layer.path.starts_with("time_text_embed.guidance_embedder.")) is_guided = true;
        if (layer.path == "context_embedder" && layer.columns() == 4096) found = "flux-1";
        if (!layer.path.ends_with(".attn2.to_k") || !layer.path.starts_with("down_blocks.")) continue;
        if (layer.columns() == 768) found = "stable-diffusion-v1";
        if (layer.columns() == 2048) found = "stable-diffusion-xl-v1-base";
    }
    return found == "flux-1" ? found + (is_guided ? "-dev" : "-schnell") : found;
}

STRATA_INLINE std::vector<std::string> target_modules(const std::vector<std::string>& adapted,
                                                      const std::vector<std::string>& all) {
    const std::set<std::string> have(adapted.begin(), adapted.end());
    std::map<std::string, bool> is_exact;  // by an ending: only adapted layers have it
    const auto ending_of = [](const std::string& path) {
        const auto steps = detail::steps_of(path);
        const bool ends_in_number = detail::number(steps.back()).has_value() && steps.size() > 1;
        return detail::joined(steps, steps.size() - (ends_in_number ? 2 : 1));
    };
    for (const std::string& path : adapted) is_exact.emplace(ending_of(path), true);
    for (auto& [ending, exact] : is_exact) {
        for (const std::string& path : all) {
            if ((path == ending || path.ends_with("." + ending)) && !have.contains(path)) exact = false;
        }
    }
    std::set<std::string> targets;
    for (const std::string& path : adapted) targets.insert(is_exact.at(ending_of(path)) ? ending_of(path) : path);
    return {targets.begin(), targets.end()};
}

STRATA_INLINE SavedAdapter saved_adapter(const std::vector<weights::SavedTensor>& parameters,
                                         const SaveAdapterOptions& options) {
    if (options.naming == FileNaming::cloneofsimo)
        throw Error{Errc::bad_value, "adapters were to be written under cloneofsimo's numbers, which are only read",
                    "write them as peft, kohya or comfyui"};
    std::map<std::string, detail::OfLayer> layers;  // by path
    std::vector<NamedLayer> all;
    std::vector<std::string> all_paths;
    std::map<std::string, const weights::SavedTensor*> weight_of;
    const std::string own_kind = options.facts.kind.empty() ? std::string{} : "." + options.facts.kind + ".";
    std::vector<const weights::SavedTensor*> of_own_kind;
    for (const weights::SavedTensor& parameter : parameters) {
        if (!own_kind.empty() && parameter.name.find(own_kind) != std::string::npos) {
            of_own_kind.push_back(&parameter);
        } else if (const auto* const known = detail::adapter_parameter(parameter.name)) {
            layers[parameter.name.substr(0, parameter.name.size() - known->ending.size())][known->ending] = &parameter;
        } else if (parameter.name.ends_with(".weight") && parameter.tensor.dim() >= 2) {
            const std::string path = parameter.name.substr(0, parameter.name.size() - 7);
            all.push_back({path, parameter.tensor.sizes().vec()});
            all_paths.push_back(path);
            weight_of.emplace(path, &parameter);
        }
    }
    if (layers.empty() && of_own_kind.empty())
        throw Error{Errc::bad_parameter, "adapters were to be written, and the model has none",
                    "compose the trainer with Adapter<Lora>, or call adapt() on the model"};
    const ModelPart part = options.part.value_or(part_of(all));
    const bool of_kohya = options.naming == FileNaming::comfyui && part != ModelPart::transformer;
    const FileNaming naming = of_kohya ? FileNaming::kohya : options.naming;
    SavedAdapter saved{.tensors = {}, .metadata = options.metadata};
    for (const weights::SavedTensor* const parameter : of_own_kind)
        saved.tensors.push_back({peft_name(parameter->name, part), parameter->tensor});
    std::map<std::string, detail::OfLayer> loras;
    for (const auto& [path, layer] : layers) {
        detail::check_layer(path, layer);
        const bool is_lokr = detail::is_lokr(layer);
        const bool is_peft = !is_lokr && options.naming == FileNaming::peft;
        const bool has_paths = is_peft || (!is_lokr && naming == FileNaming::comfyui);
        if (!is_lokr) loras.emplace(path, layer);
        const std::string module = is_lokr     ? lycoris_name(path)
                                   : is_peft   ? peft_name(path, part)
                                   : has_paths ? "diffusion_model." + path
                                               : kohya_name(path, part, options.lonely_text_encoder);
        for (const auto& [ending, parameter] : layer) {
            const auto& known = *detail::adapter_parameter(parameter->name);
            weights::SavedTensor tensor{
                module + std::string{has_paths && (is_peft || ending != ".lora.magnitude") ? known.peft : known.kohya},
                parameter->tensor};
            if (ending == ".lora.magnitude") {
                const auto base = weight_of.find(path);
                if (base == weight_of.end())
                    throw Error{Errc::bad_parameter, "the layer " + path + " has a magnitude and no weight",
                                "register its weight as `weight`"};
                tensor = detail::written_magnitude(std::move(tensor), base->second->tensor, is_peft);
            }
            saved.tensors.push_back(std::move(tensor));
        }
        const std::int64_t rank = detail::rank_of_layer(layer);
        if (is_peft) continue;
        const double alpha = detail::alpha_or_rank(options.facts, path, rank);
        saved.tensors.push_back({.name = module + ".alpha", .tensor = at::full({}, alpha), .keeps_type = true});
    }
    saved.metadata["format"] = "pt";
    detail::add_model_spec(saved.metadata, options.model, all);
    if (!loras.empty() && options.naming == FileNaming::peft)
        saved.metadata[detail::peft_metadata_key] = detail::peft_config(loras, all_paths, options.facts, part);
    if (!loras.empty() && naming == FileNaming::kohya) {
        const auto& [path, layer] = *loras.begin();
        const std::int64_t rank = detail::rank_of_layer(layer);
        saved.metadata["ss_network_module"] = "networks.lora";
        saved.metadata["ss_network_dim"] = std::to_string(rank);
        saved.metadata["ss_network_alpha"] = detail::number_text(detail::alpha_or_rank(options.facts, path, rank));
    }
    return saved;
}

}  // namespace strata::adapters
