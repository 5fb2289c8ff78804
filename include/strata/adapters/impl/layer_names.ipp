#pragma once
// strata/adapters/impl/layer_names.ipp - every name that a layer has in files.

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <strata/adapters/impl/first_paths.ipp>
#include <strata/adapters/layer_names.hpp>

namespace strata::adapters {

namespace detail {

/// What adapters of attention were called when they were processors: `attn1.processor.to_q`, `self_attn.to_q` of encoders.
inline std::optional<std::string> processor_path(std::string_view path, ModelPart part) {
    static constexpr std::array<Pair, 4> denoisers{{{".to_q", ".processor.to_q"},
                                                    {".to_k", ".processor.to_k"},
                                                    {".to_v", ".processor.to_v"},
                                                    {".to_out.0", ".processor.to_out"}}};
    static constexpr std::array<Pair, 4> encoders{
        {{".q_proj", ".to_q"}, {".k_proj", ".to_k"}, {".v_proj", ".to_v"}, {".out_proj", ".to_out"}}};
    const bool is_denoiser = part == ModelPart::unet || part == ModelPart::transformer;
    for (const auto& [ours, theirs] : is_denoiser ? denoisers : encoders) {
        if (path.ends_with(ours)) return std::string{path.substr(0, path.size() - ours.size())} + std::string{theirs};
    }
    return std::nullopt;
}

/// What stands in front of flat paths, the one that is written first.
inline std::vector<std::string_view> kohya_prefixes(ModelPart part) {
    switch (part) {
        case ModelPart::unet:
            return {"lora_unet_", "lycoris_"};
        case ModelPart::transformer:
            return {"lora_transformer_", "lora_unet_", "lycoris_"};
        case ModelPart::text_encoder:
            return {"lora_te1_", "lora_te_"};
        case ModelPart::text_encoder_2:
            return {"lora_te2_", "lora_te3_"};  // Flux.1's T5 is number 3 there, because SD 3 came first
    }
    return {};
}

}  // namespace detail

STRATA_INLINE std::string_view name_of(ModelPart part) noexcept {
    constexpr std::array<std::string_view, 4> names{"unet", "transformer", "text_encoder", "text_encoder_2"};
    return names[static_cast<std::size_t>(part)];
}

STRATA_INLINE std::int64_t NamedLayer::columns() const noexcept {
    std::int64_t product = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
    return product;
}

STRATA_INLINE ModelPart part_of(const std::vector<NamedLayer>& layers) noexcept {
    for (const NamedLayer& layer : layers) {
        if (layer.path.starts_with("down_blocks.")) return ModelPart::unet;
        if (layer.path.starts_with("text_model.")) return ModelPart::text_encoder;
        if (layer.path.starts_with("encoder.block.")) return ModelPart::text_encoder_2;
    }
    return ModelPart::transformer;
}

STRATA_INLINE std::string peft_name(std::string_view path, ModelPart part) {
    return std::string{name_of(part)} + "." + std::string{path};
}
STRATA_INLINE std::string kohya_name(std::string_view path, ModelPart part, bool lonely_text_encoder) {
    const std::string_view prefix = lonely_text_encoder && part == ModelPart::text_encoder
                                        ? std::string_view{"lora_te_"}
                                        : detail::kohya_prefixes(part).front();
    return std::string{prefix} + detail::flattened(path);
}
STRATA_INLINE std::string lycoris_name(std::string_view path) { return "lycoris_" + detail::flattened(path); }

STRATA_INLINE LayerNames::LayerNames(std::vector<NamedLayer> layers, ModelPart part)
    : layers_{std::move(layers)}, part_{part} {
    const detail::FirstUnetPaths first_unet{layers_};
    std::unordered_map<std::string_view, std::size_t> by_path;
    for (std::size_t i = 0; i < layers_.size(); ++i) by_path.emplace(layers_[i].path, i);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        const NamedLayer& layer = layers_[i];
        const FilePlace whole{.layer = i, .rows = layer.rows()};
        add_path(layer.path, whole);
        if (const auto path = detail::processor_path(layer.path, part)) {
            add(std::string{name_of(part)} + "." + *path, whole);
            add(*path, whole);
        }
        if (part == ModelPart::unet) {
            if (const auto path = first_unet.of(layer.path)) add_path(*path, whole);
        }
        if (part != ModelPart::transformer) continue;
        // Where a row of theirs is none of the model's, theirs is no name of ours.
        const auto place_in = [&](const detail::FirstFluxLayer& theirs) -> std::optional<FilePlace> {
            FilePlace place{.layer = i, .halves_swapped = theirs.halves_swapped};
            for (const std::string& path : theirs.ours) {
                const auto found = by_path.find(path);
                if (found == by_path.end()) return std::nullopt;
                if (found->second == i) place.first_row = place.rows;
                place.rows += layers_[found->second].rows();
            }
            return place;
        };
        if (const auto theirs = detail::first_flux_layer(layer.path)) {
            if (const auto place = place_in(*theirs)) add_path(theirs->path, *place);
        }
        if (const auto theirs = detail::xlabs_flux_layer(layer.path)) {
            if (const auto place = place_in(*theirs)) add(theirs->path, *place);
        }
    }
}

STRATA_INLINE void LayerNames::add(const std::string& in_file, const FilePlace& place) {
    std::vector<FilePlace>& places = places_[in_file];
    const bool is_known =
        std::any_of(places.begin(), places.end(), [&](const FilePlace& known) { return known.layer == place.layer; });
    if (!is_known) places.push_back(place);
}

STRATA_INLINE void LayerNames::add_path(const std::string& path, const FilePlace& place) {
    const bool is_denoiser = part_ == ModelPart::unet || part_ == ModelPart::transformer;
    add(peft_name(path, part_), place);
    add("base_model.model." + path, place);
    add(path, place);
    if (is_denoiser) add("diffusion_model." + path, place);
    for (const std::string_view prefix : detail::kohya_prefixes(part_))
        add(std::string{prefix} + detail::flattened(path), place);
}

STRATA_INLINE const std::vector<FilePlace>& LayerNames::find(const std::string& in_file) const noexcept {
    static const std::vector<FilePlace> none;
    const auto found = places_.find(in_file);
    return found == places_.end() ? none : found->second;
}

STRATA_INLINE bool LayerNames::is_of_another_part(std::string_view in_file) const noexcept {
    using enum ModelPart;
    constexpr std::string_view of_peft = "base_model.model.";
    if (in_file.starts_with(of_peft)) in_file.remove_prefix(of_peft.size());
    for (const ModelPart part : {unet, transformer, text_encoder, text_encoder_2}) {
        if (part == part_) continue;
        if (in_file.starts_with(std::string{name_of(part)} + ".")) return true;
        for (const std::string_view prefix : detail::kohya_prefixes(part)) {
            const auto own = detail::kohya_prefixes(part_);
            if (in_file.starts_with(prefix) && std::find(own.begin(), own.end(), prefix) == own.end()) return true;
        }
    }
    const bool is_denoiser = part_ == unet || part_ == transformer;
    if (is_denoiser) return in_file.starts_with("text_model.");
    // Of names with nothing in front, encoders' begin with one of two words: others are the denoiser's, which has many.
    const auto own = detail::kohya_prefixes(part_);
    const bool has_own_prefix =
        in_file.starts_with(std::string{name_of(part_)} + ".") ||
        std::any_of(own.begin(), own.end(), [&](std::string_view prefix) { return in_file.starts_with(prefix); });
    return !has_own_prefix && !in_file.starts_with("text_model.") && !in_file.starts_with("encoder.block.");
}

STRATA_INLINE std::vector<std::string> LayerNames::nearest(std::string_view in_file) const {
    const std::string flat = detail::flattened(in_file);
    std::vector<std::pair<std::size_t, std::string>> found;
    for (const NamedLayer& layer : layers_) {
        const std::string own = detail::flattened(layer.path);
        const auto [a, b] = std::mismatch(flat.rbegin(), flat.rend(), own.rbegin(), own.rend());
        found.emplace_back(static_cast<std::size_t>(a - flat.rbegin()), layer.path);
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, found.size()) && found[i].first >= 4; ++i)
        names.push_back(found[i].second);
    return names;
}

}  // namespace strata::adapters
