#pragma once
// strata/adapters/impl/numbered_layers.ipp - the order of modules in diffusers' U-Net and in a CLIP.

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <strata/adapters/adapter_match.hpp>
#include <strata/adapters/impl/layer_names.ipp>
#include <strata/core/error.hpp>

namespace strata::adapters {

namespace detail {

struct TargetClasses {
    bool attention = false;
    bool geglu = false;
};

inline TargetClasses classes_of(const std::vector<std::string>& names, ModelPart part) {
    TargetClasses found;
    std::string unknown;
    for (const std::string& name : names) {
        if (part == ModelPart::unet ? name == "CrossAttention" || name == "Attention" : name == "CLIPAttention")
            found.attention = true;
        else if (part == ModelPart::unet && name == "GEGLU")
            found.geglu = true;
        else
            unknown += (unknown.empty() ? "" : ", ") + name;
    }
    if (!unknown.empty())
        throw Error{
            Errc::bad_adapter_file,
            "a file with numbered layers has those of the classes " + unknown + ", whose numbers are not known here",
            "convert it with the program that made it: CrossAttention, Attention and GEGLU of a U-Net and "
            "CLIPAttention are read"};
    return found;
}

/// Place of a step in a list; none: it is not in it.
template <std::size_t count>
std::optional<std::int64_t> place_in(const std::array<std::string_view, count>& names, std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return found - names.begin();
}

/// Where a layer of a U-Net stands, as a key that sorts; none: it is of no target class.
inline std::optional<std::vector<std::int64_t>> unet_place(std::string_view path, const TargetClasses& classes,
                                                           bool feed_forward_first) {
    constexpr std::array<std::string_view, 3> stages{"down_blocks", "up_blocks", "mid_block"};
    constexpr std::array<std::string_view, 4> of_attention{"to_q", "to_k", "to_v", "to_out.0"};
    std::vector<std::string_view> steps = steps_of(path);
    const auto stage = place_in(stages, steps[0]);
    if (!stage) return std::nullopt;
    if (steps[0] == "mid_block") steps.insert(steps.begin() + 1, "0");
    // down_blocks 0 attentions 0 transformer_blocks 0 attn1 to_q
    if (steps.size() < 8 || steps[2] != "attentions" || steps[4] != "transformer_blocks") return std::nullopt;
    std::vector<std::int64_t> place{*stage, number(steps[1]).value_or(0), number(steps[3]).value_or(0),
                                    number(steps[5]).value_or(0)};
    const std::string rest = joined(steps, 7);
    if (steps[6] == "ff" && rest == "net.0.proj" && classes.geglu) {
        place.insert(place.end(), {feed_forward_first ? 1 : 3, 0});
        return place;
    }
    const auto layer = place_in(of_attention, rest);
    if (!layer || !classes.attention || (steps[6] != "attn1" && steps[6] != "attn2")) return std::nullopt;
    place.insert(place.end(), {steps[6] == "attn1" ? 0 : 2, *layer});
    return place;
}

/// The same of a layer of a CLIP.
inline std::optional<std::vector<std::int64_t>> clip_place(std::string_view path, const TargetClasses& classes) {
    constexpr std::array<std::string_view, 4> of_attention{"k_proj", "v_proj", "q_proj", "out_proj"};
    const std::vector<std::string_view> steps = steps_of(path);  // text_model encoder layers 0 self_attn k_proj
    if (!classes.attention || steps.size() != 6 || steps[2] != "layers" || steps[4] != "self_attn") return std::nullopt;
    const auto layer = place_in(of_attention, steps[5]);
    if (!layer) return std::nullopt;
    return std::vector<std::int64_t>{number(steps[3]).value_or(0), *layer};
}

}  // namespace detail

STRATA_INLINE std::vector<std::size_t> numbered_layers(const std::vector<NamedLayer>& layers, ModelPart part,
                                                       const std::vector<std::string>& classes,
                                                       bool feed_forward_first) {
    const detail::TargetClasses targets = detail::classes_of(classes, part);
    std::vector<std::pair<std::vector<std::int64_t>, std::size_t>> places;
    for (std::size_t i = 0; i < layers.size(); ++i) {
        auto place = part == ModelPart::unet ? detail::unet_place(layers[i].path, targets, feed_forward_first)
                                             : detail::clip_place(layers[i].path, targets);
        if (place) places.emplace_back(std::move(*place), i);
    }
    std::sort(places.begin(), places.end());
    std::vector<std::size_t> order;
    for (const auto& [place, layer] : places) order.push_back(layer);
    return order;
}

}  // namespace strata::adapters
