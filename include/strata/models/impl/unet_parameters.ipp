#pragma once
// strata/models/impl/unet_parameters.ipp - names and shapes of a U-Net's parameters.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <strata/models/impl/unet_options.ipp>

namespace strata::models {

namespace detail {

/// Writes parameters down, layer by layer.
class UnetParameterList {
public:
    explicit UnetParameterList(const UnetOptions& options) : options_{&options} {}

    void linear(const std::string& name, std::int64_t in, std::int64_t out, bool has_bias = true) {
        all_.push_back({name + ".weight", {out, in}});
        if (has_bias) all_.push_back({name + ".bias", {out}});
    }
    void convolution(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t edge) {
        all_.push_back({name + ".weight", {out, in, edge, edge}});
        all_.push_back({name + ".bias", {out}});
    }
    void norm(const std::string& name, std::int64_t channels) {
        all_.push_back({name + ".weight", {channels}});
        all_.push_back({name + ".bias", {channels}});
    }
    void embedding(const std::string& name, std::int64_t in) {
        linear(name + ".linear_1", in, options_->time_dim());
        linear(name + ".linear_2", options_->time_dim(), options_->time_dim());
    }
    void block(const std::string& name, const UnetBlockShape& shape, const std::string& resampler) {
        for (std::size_t i = 0; i < shape.resnets.size(); ++i) {
            const auto& [in, out] = shape.resnets[i];
            resnet(name + ".resnets." + std::to_string(i), in, out);
        }
        // One attention behind each residual block; in the middle between the two.
        const std::size_t attentions = shape.depth == 0 ? 0 : shape.resnets.size() - (name == "mid_block" ? 1 : 0);
        for (std::size_t i = 0; i < attentions; ++i)
            attention(name + ".attentions." + std::to_string(i), shape.channels(), shape.depth);
        if (shape.resamples) convolution(name + "." + resampler + ".0.conv", shape.channels(), shape.channels(), 3);
    }
    [[nodiscard]] std::vector<UnetParameter> take() { return std::move(all_); }

private:
    void resnet(const std::string& name, std::int64_t in, std::int64_t out) {
        norm(name + ".norm1", in);
        convolution(name + ".conv1", in, out, 3);
        linear(name + ".time_emb_proj", options_->time_dim(), out);
        norm(name + ".norm2", out);
        convolution(name + ".conv2", out, out, 3);
        if (in != out) convolution(name + ".conv_shortcut", in, out, 1);
    }
    void projection(const std::string& name, std::int64_t channels) {
        if (options_->linear_projection)
            linear(name, channels, channels);
        else
            convolution(name, channels, channels, 1);
    }
    void attention(const std::string& name, std::int64_t channels, std::int64_t depth) {
        norm(name + ".norm", channels);
        projection(name + ".proj_in", channels);
        for (std::int64_t i = 0; i < depth; ++i) {
            const std::string block = name + ".transformer_blocks." + std::to_string(i);
            for (const auto& [attn, width] :
                 {std::pair{".attn1", channels}, std::pair{".attn2", options_->cross_attention_dim}}) {
                linear(block + attn + ".to_q", channels, channels, false);
                linear(block + attn + ".to_k", width, channels, false);
                linear(block + attn + ".to_v", width, channels, false);
                linear(block + attn + ".to_out.0", channels, channels);
            }
            linear(block + ".ff.net.0.proj", channels, 8 * channels);
            linear(block + ".ff.net.2", 4 * channels, channels);
            for (const char* each : {".norm1", ".norm2", ".norm3"}) norm(block + each, channels);
        }
        projection(name + ".proj_out", channels);
    }

    const UnetOptions* options_;
    std::vector<UnetParameter> all_;
};

}  // namespace detail

STRATA_INLINE std::vector<UnetParameter> unet_parameters(const UnetOptions& options) {
    const std::int64_t first = options.levels.front().channels;
    detail::UnetParameterList list{options};
    list.convolution("conv_in", options.in_channels, first, 3);
    list.embedding("time_embedding", first);
    if (options.addition_time_dim > 0) list.embedding("add_embedding", options.addition_input_dim);
    const auto add_blocks = [&](const std::string& name, const std::vector<UnetBlockShape>& shapes,
                                const std::string& resampler) {
        for (std::size_t i = 0; i < shapes.size(); ++i)
            list.block(name + "." + std::to_string(i), shapes[i], resampler);
    };
    add_blocks("down_blocks", down_block_shapes(options), "downsamplers");
    list.block("mid_block", mid_block_shape(options), "");
    add_blocks("up_blocks", up_block_shapes(options), "upsamplers");
    list.norm("conv_norm_out", first);
    list.convolution("conv_out", first, options.out_channels, 3);
    return list.take();
}

STRATA_INLINE std::int64_t unet_parameter_count(const UnetOptions& options) {
    std::int64_t count = 0;
    for (const UnetParameter& parameter : unet_parameters(options)) count += parameter.numel();
    return count;
}

}  // namespace strata::models
