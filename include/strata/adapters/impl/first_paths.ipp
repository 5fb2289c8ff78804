#pragma once
// strata/adapters/impl/first_paths.ipp - paths of diffusers' layers, and those of the models' first code.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <strata/adapters/layer_names.hpp>

namespace strata::adapters::detail {

using Pair = std::pair<std::string_view, std::string_view>;

inline std::string flattened(std::string_view path) {
    std::string text{path};
    std::replace(text.begin(), text.end(), '.', '_');
    return text;
}

/// "a.b.c" -> {"a", "b", "c"}
inline std::vector<std::string_view> steps_of(std::string_view path) {
    std::vector<std::string_view> steps;
    for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
        steps.push_back(path.substr(0, dot));
        path.remove_prefix(dot + 1);
    }
    steps.push_back(path);
    return steps;
}
inline std::string joined(const std::vector<std::string_view>& steps, std::size_t begin) {
    std::string text;
    for (std::size_t i = begin; i < steps.size(); ++i) (text += text.empty() ? "" : ".") += steps[i];
    return text;
}
inline std::optional<std::int64_t> number(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}
inline std::optional<std::string_view> second_of(std::span<const Pair> pairs, std::string_view first) {
    for (const auto& [a, b] : pairs) {
        if (a == first) return b;
    }
    return std::nullopt;
}

/// What a U-Net's layers are called in the code that it was first trained with (openaimodel.UNetModel), in which blocks
/// of one direction are counted through: a down block has its residual blocks and a halving, so does an up block.
class FirstUnetPaths {
public:
    explicit FirstUnetPaths(const std::vector<NamedLayer>& layers) {
        for (const NamedLayer& layer : layers) {
            const auto steps = steps_of(layer.path);
            if (steps.size() < 4) continue;
            const std::optional<std::int64_t> block = number(steps[1]);
            if (steps[0] == "down_blocks" && steps[2] == "resnets")
                residual_blocks_ = std::max(residual_blocks_, number(steps[3]).value_or(0) + 1);
            if (steps[0] == "up_blocks" && steps[2] == "attentions" && block) attentive_.push_back(*block);
        }
    }
    [[nodiscard]] std::optional<std::string> of(std::string_view path) const {
        if (const auto whole = second_of(outside, path)) return std::string{*whole};
        const auto steps = steps_of(path);
        if (steps.size() < 4) return std::nullopt;
        if (steps[0] == "mid_block") return inside(steps, 1, "middle_block.", true);
        const std::optional<std::int64_t> block = number(steps[1]);
        if (!block || steps.size() < 5) return std::nullopt;
        const std::int64_t layer = number(steps[3]).value_or(0);
        if (steps[0] == "down_blocks") {
            const std::int64_t first = 1 + *block * (residual_blocks_ + 1);
            if (steps[2] == "downsamplers") return "input_blocks." + std::to_string(first + residual_blocks_) + ".0.op";
            return inside(steps, 2, "input_blocks." + std::to_string(first + layer) + ".", false);
        }
        if (steps[0] != "up_blocks") return std::nullopt;
        const std::int64_t first = *block * (residual_blocks_ + 1);
        if (steps[2] == "upsamplers") {
            const bool behind_attention = std::find(attentive_.begin(), attentive_.end(), *block) != attentive_.end();
            return "output_blocks." + std::to_string(first + residual_blocks_) + (behind_attention ? ".2" : ".1") +
                   ".conv";
        }
        return inside(steps, 2, "output_blocks." + std::to_string(first + layer) + ".", false);
    }

private:
    /// A layer of a residual block or of an attention.
    ///
    ///   kind  where "resnets" or "attentions" stands in steps
    static std::optional<std::string> inside(const std::vector<std::string_view>& steps, std::size_t kind,
                                             const std::string& block, bool in_the_middle) {
        const bool is_attention = steps[kind] == "attentions";
        if (!is_attention && steps[kind] != "resnets") return std::nullopt;
        const std::string rest = joined(steps, kind + 2);
        // A block has its residual part, then its attention; the middle one a second residual part behind that.
        const std::int64_t second = in_the_middle ? number(steps[kind + 1]).value_or(0) : 0;
        const std::int64_t number_inside = is_attention ? 1 : 2 * second;
        const std::string begin = block + std::to_string(number_inside) + ".";
        if (is_attention) return begin + rest;
        const auto renamed = second_of(of_residual_block, rest);
        return renamed ? std::optional{begin + std::string{*renamed}} : std::nullopt;
    }

    static constexpr std::array<Pair, 6> outside{{{"conv_in", "input_blocks.0.0"},
                                                  {"conv_out", "out.2"},
                                                  {"time_embedding.linear_1", "time_embed.0"},
                                                  {"time_embedding.linear_2", "time_embed.2"},
                                                  {"add_embedding.linear_1", "label_emb.0.0"},
                                                  {"add_embedding.linear_2", "label_emb.0.2"}}};
    static constexpr std::array<Pair, 4> of_residual_block{{{"conv1", "in_layers.2"},
                                                            {"conv2", "out_layers.3"},
                                                            {"time_emb_proj", "emb_layers.1"},
                                                            {"conv_shortcut", "skip_connection"}}};
    std::int64_t residual_blocks_ = 0;     // of a down block
    std::vector<std::int64_t> attentive_;  // up blocks with attention
};

/// A layer of Flux.1's first code: several of ours are one of its layers, one below the other.
struct FirstFluxLayer {
    std::string path;
    std::vector<std::string> ours;  // in the order of its rows
    bool halves_swapped = false;
};

inline std::optional<FirstFluxLayer> first_flux_layer(std::string_view path) {
    static constexpr std::array<Pair, 9> outside{
        {{"x_embedder", "img_in"},
         {"context_embedder", "txt_in"},
         {"time_text_embed.timestep_embedder.linear_1", "time_in.in_layer"},
         {"time_text_embed.timestep_embedder.linear_2", "time_in.out_layer"},
         {"time_text_embed.text_embedder.linear_1", "vector_in.in_layer"},
         {"time_text_embed.text_embedder.linear_2", "vector_in.out_layer"},
         {"time_text_embed.guidance_embedder.linear_1", "guidance_in.in_layer"},
         {"time_text_embed.guidance_embedder.linear_2", "guidance_in.out_layer"},
         {"proj_out", "final_layer.linear"}}};
    static constexpr std::array<Pair, 8> of_double_block{{{"attn.to_out.0", "img_attn.proj"},
                                                          {"attn.to_add_out", "txt_attn.proj"},
                                                          {"ff.net.0.proj", "img_mlp.0"},
                                                          {"ff.net.2", "img_mlp.2"},
                                                          {"ff_context.net.0.proj", "txt_mlp.0"},
                                                          {"ff_context.net.2", "txt_mlp.2"},
                                                          {"norm1.linear", "img_mod.lin"},
                                                          {"norm1_context.linear", "txt_mod.lin"}}};
    if (const auto whole = second_of(outside, path)) return FirstFluxLayer{std::string{*whole}, {std::string{path}}};
    // Its last layer gives shift before scale, diffusers' norm_out scale before shift.
    if (path == "norm_out.linear") return FirstFluxLayer{"final_layer.adaLN_modulation.1", {std::string{path}}, true};
    const auto steps = steps_of(path);
    if (steps.size() < 3) return std::nullopt;
    const std::string rest = joined(steps, 2);
    const std::string ours = std::string{steps[0]} + "." + std::string{steps[1]} + ".";
    const auto fused = [&](const std::string& theirs, std::initializer_list<const char*> parts) {
        FirstFluxLayer layer{theirs, {}};
        for (const char* part : parts) layer.ours.push_back(ours + part);
        return layer;
    };
    if (steps[0] == "transformer_blocks") {
        const std::string theirs = "double_blocks." + std::string{steps[1]} + ".";
        if (const auto renamed = second_of(of_double_block, rest))
            return FirstFluxLayer{theirs + std::string{*renamed}, {std::string{path}}};
        if (rest == "attn.to_q" || rest == "attn.to_k" || rest == "attn.to_v")
            return fused(theirs + "img_attn.qkv", {"attn.to_q", "attn.to_k", "attn.to_v"});
        if (rest == "attn.add_q_proj" || rest == "attn.add_k_proj" || rest == "attn.add_v_proj")
            return fused(theirs + "txt_attn.qkv", {"attn.add_q_proj", "attn.add_k_proj", "attn.add_v_proj"});
    }
    if (steps[0] == "single_transformer_blocks") {
        const std::string theirs = "single_blocks." + std::string{steps[1]} + ".";
        if (rest == "proj_out") return FirstFluxLayer{theirs + "linear2", {std::string{path}}};
        if (rest == "norm.linear") return FirstFluxLayer{theirs + "modulation.lin", {std::string{path}}};
        return fused(theirs + "linear1", {"attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"});
    }
    return std::nullopt;
}

/// The same in files of XLabs' trainer, whose adapters are processors of attention: _lora1 of pictures, _lora2 of texts.
inline std::optional<FirstFluxLayer> xlabs_flux_layer(std::string_view path) {
    const auto steps = steps_of(path);
    if (steps.size() < 3) return std::nullopt;
    const std::string rest = joined(steps, 2);
    const std::string ours = std::string{steps[0]} + "." + std::string{steps[1]} + ".";
    const bool is_double = steps[0] == "transformer_blocks";
    if (!is_double && steps[0] != "single_transformer_blocks") return std::nullopt;
    const std::string theirs =
        (is_double ? "double_blocks." : "single_blocks.") + std::string{steps[1]} + ".processor.";
    if (rest == "attn.to_q" || rest == "attn.to_k" || rest == "attn.to_v")
        return FirstFluxLayer{theirs + (is_double ? "qkv_lora1" : "qkv"),
                              {ours + "attn.to_q", ours + "attn.to_k", ours + "attn.to_v"}};
    if (rest == "attn.add_q_proj" || rest == "attn.add_k_proj" || rest == "attn.add_v_proj")
        return FirstFluxLayer{theirs + "qkv_lora2",
                              {ours + "attn.add_q_proj", ours + "attn.add_k_proj", ours + "attn.add_v_proj"}};
    if (rest == "attn.to_out.0") return FirstFluxLayer{theirs + "proj_lora1", {std::string{path}}};
    if (rest == "attn.to_add_out") return FirstFluxLayer{theirs + "proj_lora2", {std::string{path}}};
    if (rest == "proj_out") return FirstFluxLayer{theirs + "proj", {std::string{path}}};
    return std::nullopt;
}

}  // namespace strata::adapters::detail
