#pragma once
// tests/support/made_models.hpp - names and shapes of models as the ecosystem's files have them, and random values.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/document.hpp>
#include <strata/core/random.hpp>
#include <strata/models/unet_options.hpp>
#include <strata/storage/safetensors.hpp>

#include "made_weights.hpp"

namespace strata_test {

/// Writes names and shapes down, layer by layer.
struct Layers {
    Shapes shapes{};

    void linear(const std::string& name, std::int64_t in, std::int64_t out, bool has_bias = true) {
        shapes[name + ".weight"] = {out, in};
        if (has_bias) shapes[name + ".bias"] = {out};
    }
    void convolution(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t edge = 3) {
        shapes[name + ".weight"] = {out, in, edge, edge};
        shapes[name + ".bias"] = {out};
    }
    void norm(const std::string& name, std::int64_t width, bool has_bias = true) {
        shapes[name + ".weight"] = {width};
        if (has_bias) shapes[name + ".bias"] = {width};
    }
};

/// Of a FluxTransformer2DModel with this config.json.
inline Shapes flux_shapes(const nlohmann::json& config) {
    const auto at = [&](const char* key) { return config.at(key).get<std::int64_t>(); };
    const std::int64_t head = at("attention_head_dim"), width = at("num_attention_heads") * head;
    Layers all;
    all.linear("x_embedder", at("in_channels"), width);
    all.linear("context_embedder", at("joint_attention_dim"), width);
    for (const auto& [name, in] : std::map<std::string, std::int64_t>{
             {"timestep_embedder", 256}, {"guidance_embedder", 256}, {"text_embedder", at("pooled_projection_dim")}}) {
        if (name == "guidance_embedder" && !config.at("guidance_embeds").get<bool>()) continue;
        all.linear("time_text_embed." + name + ".linear_1", in, width);
        all.linear("time_text_embed." + name + ".linear_2", width, width);
    }
    for (std::int64_t i = 0; i < at("num_layers"); ++i) {
        const std::string block = "transformer_blocks." + std::to_string(i) + ".";
        for (const char* name :
             {"to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"})
            all.linear(block + "attn." + name, width, width);
        for (const char* name : {"norm_q", "norm_k", "norm_added_q", "norm_added_k"})
            all.norm(block + "attn." + name, head, false);
        for (const char* name : {"norm1", "norm1_context"}) all.linear(block + name + ".linear", width, 6 * width);
        for (const char* name : {"ff", "ff_context"}) {
            all.linear(block + name + ".net.0.proj", width, 4 * width);
            all.linear(block + name + ".net.2", 4 * width, width);
        }
    }
    for (std::int64_t i = 0; i < at("num_single_layers"); ++i) {
        const std::string block = "single_transformer_blocks." + std::to_string(i) + ".";
        for (const char* name : {"to_q", "to_k", "to_v"}) all.linear(block + "attn." + name, width, width);
        for (const char* name : {"norm_q", "norm_k"}) all.norm(block + "attn." + name, head, false);
        all.linear(block + "norm.linear", width, 3 * width);
        all.linear(block + "proj_mlp", width, 4 * width);
        all.linear(block + "proj_out", 5 * width, width);
    }
    all.linear("norm_out.linear", width, 2 * width);
    all.linear("proj_out", width, at("in_channels"));
    return all.shapes;
}

/// Of a UNet2DConditionModel.
inline Shapes unet_shapes(const nlohmann::json& config) {
    namespace config_room = strata::config;
    Shapes shapes;
    for (const auto& parameter : strata::models::unet_parameters(strata::models::unet_options_of(
             config_room::parse_json(config.dump(), "config.json", config_room::JsonDialect::strict))))
        shapes[parameter.name] = parameter.shape;
    return shapes;
}

/// Of an AutoencoderKL.
inline Shapes autoencoder_shapes(const nlohmann::json& config) {
    const auto widths = config.at("block_out_channels").get<std::vector<std::int64_t>>();
    const auto latents = config.at("latent_channels").get<std::int64_t>();
    const auto layers = config.at("layers_per_block").get<std::int64_t>();
    Layers all;
    const auto resnet = [&](const std::string& name, std::int64_t in, std::int64_t out) {
        all.norm(name + ".norm1", in);
        all.convolution(name + ".conv1", in, out);
        all.norm(name + ".norm2", out);
        all.convolution(name + ".conv2", out, out);
        if (in != out) all.convolution(name + ".conv_shortcut", in, out, 1);
    };
    const auto middle = [&](const std::string& name, std::int64_t width) {
        resnet(name + ".resnets.0", width, width);
        resnet(name + ".resnets.1", width, width);
        all.norm(name + ".attentions.0.group_norm", width);
        for (const char* each : {"to_q", "to_k", "to_v", "to_out.0"})
            all.linear(name + ".attentions.0." + each, width, width);
    };
    const auto blocks = [&](const std::string& name, std::vector<std::int64_t> of, std::int64_t first,
                            std::int64_t each, const std::string& resampler) {
        std::int64_t in = first;
        for (std::size_t i = 0; i < of.size(); ++i) {
            const std::string block = name + "." + std::to_string(i) + ".";
            for (std::int64_t j = 0; j < each; ++j, in = of[i])
                resnet(block + "resnets." + std::to_string(j), in, of[i]);
            if (i + 1 < of.size()) all.convolution(block + resampler + ".0.conv", of[i], of[i]);
        }
    };
    all.convolution("encoder.conv_in", 3, widths.front());
    blocks("encoder.down_blocks", widths, widths.front(), layers, "downsamplers");
    middle("encoder.mid_block", widths.back());
    all.norm("encoder.conv_norm_out", widths.back());
    all.convolution("encoder.conv_out", widths.back(), 2 * latents);
    all.convolution("decoder.conv_in", latents, widths.back());
    middle("decoder.mid_block", widths.back());
    blocks("decoder.up_blocks", {widths.rbegin(), widths.rend()}, widths.back(), layers + 1, "upsamplers");
    all.norm("decoder.conv_norm_out", widths.front());
    all.convolution("decoder.conv_out", widths.front(), 3);
    if (config.value("use_quant_conv", true)) all.convolution("quant_conv", 2 * latents, 2 * latents, 1);
    if (config.value("use_post_quant_conv", true)) all.convolution("post_quant_conv", latents, latents, 1);
    return all.shapes;
}

/// Of a CLIPTextModel, or CLIPTextModelWithProjection.
inline Shapes clip_shapes(const nlohmann::json& config) {
    const auto at = [&](const char* key) { return config.at(key).get<std::int64_t>(); };
    const std::int64_t width = at("hidden_size");
    Layers all;
    all.shapes["text_model.embeddings.token_embedding.weight"] = {at("vocab_size"), width};
    all.shapes["text_model.embeddings.position_embedding.weight"] = {at("max_position_embeddings"), width};
    for (std::int64_t i = 0; i < at("num_hidden_layers"); ++i) {
        const std::string layer = "text_model.encoder.layers." + std::to_string(i) + ".";
        for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
            all.linear(layer + "self_attn." + name, width, width);
        for (const char* name : {"layer_norm1", "layer_norm2"}) all.norm(layer + name, width);
        all.linear(layer + "mlp.fc1", width, at("intermediate_size"));
        all.linear(layer + "mlp.fc2", at("intermediate_size"), width);
    }
    all.norm("text_model.final_layer_norm", width);
    if (config.at("architectures").at(0) == "CLIPTextModelWithProjection")
        all.linear("text_projection", width, at("projection_dim"), false);
    return all.shapes;
}

/// Of a T5EncoderModel.
inline Shapes t5_shapes(const nlohmann::json& config) {
    const auto at = [&](const char* key) { return config.at(key).get<std::int64_t>(); };
    const std::int64_t width = at("d_model"), inside = at("num_heads") * at("d_kv");
    Layers all;
    all.shapes["shared.weight"] = {at("vocab_size"), width};
    for (std::int64_t i = 0; i < at("num_layers"); ++i) {
        const std::string block = "encoder.block." + std::to_string(i) + ".layer.";
        for (const char* name : {"q", "k", "v"}) all.linear(block + "0.SelfAttention." + name, width, inside, false);
        all.linear(block + "0.SelfAttention.o", inside, width, false);
        for (const char* name : {"wi_0", "wi_1"})
            all.linear(block + "1.DenseReluDense." + name, width, at("d_ff"), false);
        all.linear(block + "1.DenseReluDense.wo", at("d_ff"), width, false);
        for (const char* name : {"0.layer_norm", "1.layer_norm"}) all.norm(block + name, width, false);
    }
    all.shapes["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = {
        at("relative_attention_num_buckets"), at("num_heads")};
    all.norm("encoder.final_layer_norm", width, false);
    return all.shapes;
}

/// Writes fp32 tensors whose values follow from their names: weights of a deviation that keeps what they are multiplied
/// with as large as it was, norms about 1, small biases.
inline void write_random_weights(const std::filesystem::path& path, const Shapes& shapes) {
    std::vector<std::vector<float>> values;
    std::vector<strata::storage::TensorBytes> tensors;
    for (const auto& [name, shape] : shapes) {
        std::size_t numel = 1;
        for (const std::int64_t size : shape) numel *= static_cast<std::size_t>(size);
        const double fan_in = shape.size() < 2 ? 300 : static_cast<double>(numel) / static_cast<double>(shape[0]);
        const double middle = shape.size() == 1 && name.ends_with(".weight") ? 1 : 0;
        strata::core::Random random{strata::core::number_of(name)};
        auto& of_tensor = values.emplace_back(numel);
        for (float& value : of_tensor)
            value = static_cast<float>(middle +
                                       (2 * strata::core::unit_interval(random.next()) - 1) * std::sqrt(3 / fan_in));
        tensors.push_back({name, strata::storage::Dtype::f32, shape, std::as_bytes(std::span{of_tensor})});
    }
    strata::storage::write_safetensors(path, tensors, {{"format", "pt"}});
}

/// The same in two files with an index, as weights are published that are too large for one.
inline void write_random_shards(const std::filesystem::path& folder, const std::string& stem, const Shapes& shapes) {
    std::map<std::string, std::string> file_of;
    for (std::size_t shard = 0; shard < 2; ++shard) {
        Shapes part;
        for (std::size_t i = 0; const auto& one : shapes)
            if (2 * i++ / shapes.size() == shard) part.insert(one);
        const std::string file = stem + "-0000" + std::to_string(shard + 1) + "-of-00002.safetensors";
        write_random_weights(folder / file, part);
        for (const auto& [name, shape] : part) file_of[name] = file;
    }
    write_index(folder / (stem + ".safetensors.index.json"), file_of);
}

}  // namespace strata_test
