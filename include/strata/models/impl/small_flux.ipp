#pragma once
// strata/models/impl/small_flux.ipp - bodies of SmallFlux.

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/diffusion/noise_source.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/impl/flux_blocks.ipp>
#include <strata/models/packing.hpp>
#include <strata/models/small_flux.hpp>

namespace strata::models {

namespace detail {

inline std::int64_t head_width(const SmallFluxOptions& options) {
    const RotaryAxes& axes = options.rotary_axes;
    const std::int64_t width = axes[0] + axes[1] + axes[2];
    if (width % 16 != 0 || axes[0] % 2 != 0 || axes[1] % 2 != 0 || axes[2] % 2 != 0)
        throw Error{Errc::bad_model_options,
                    "SmallFluxOptions::rotary_axes are {" + std::to_string(axes[0]) + ", " + std::to_string(axes[1]) +
                        ", " + std::to_string(axes[2]) + "}",
                    "give three even widths whose sum is a multiple of 16, as {16, 24, 24}"};
    return width;
}

}  // namespace detail

STRATA_INLINE Embedder::Embedder(std::int64_t in, std::int64_t D)
    : linear_1(register_module("linear_1", torch::nn::Linear(in, D))),
      linear_2(register_module("linear_2", torch::nn::Linear(D, D))) {
    // Inputs have a root mean square of about 1; so shall the output. Modulations start at zero, and Adam moves what
    // they put out in proportion to this size; libtorch's own start is five times smaller.
    torch::nn::init::normal_(linear_1->weight, 0.0, 1.0 / std::sqrt(static_cast<double>(in)));
    torch::nn::init::normal_(linear_2->weight, 0.0, 1.7 / std::sqrt(static_cast<double>(D)));
    torch::nn::init::zeros_(linear_1->bias);
    torch::nn::init::zeros_(linear_2->bias);
}

STRATA_INLINE at::Tensor Embedder::forward(const at::Tensor& x) {
    return detail::apply(linear_2, at::silu(detail::apply(linear_1, x)));
}

STRATA_INLINE TimeTextEmbedding::TimeTextEmbedding(std::int64_t pooled, std::int64_t D)
    : timestep_embedder(register_module("timestep_embedder", std::make_shared<Embedder>(256, D))),
      text_embedder(register_module("text_embedder", std::make_shared<Embedder>(pooled, D))) {}

STRATA_INLINE at::Tensor timestep_features(const at::Tensor& sigma_B) {
    const at::Tensor frequencies = (at::arange(128, sigma_B.options()) * (-std::log(10000.0) / 128)).exp();
    const at::Tensor angles = (sigma_B * 1000).unsqueeze(1) * frequencies;
    return at::cat({angles.cos(), angles.sin()}, 1);
}

STRATA_INLINE SmallFlux::SmallFlux(const SmallFluxOptions& options)
    : options_(options), x_embedder_(nullptr), context_embedder_(nullptr), proj_out_(nullptr) {
    const std::int64_t K = detail::head_width(options);
    const std::int64_t D = K * options.heads;
    const std::int64_t token = 4 * options.latent_channels;
    time_text_embed_ = register_module("time_text_embed", std::make_shared<TimeTextEmbedding>(options.text_width, D));
    context_embedder_ = register_module("context_embedder", torch::nn::Linear(options.text_width, D));
    x_embedder_ = register_module("x_embedder", torch::nn::Linear(token, D));
    const auto add_blocks = [&](const char* name, auto& blocks, std::int64_t count) {
        using Block = typename std::decay_t<decltype(blocks)>::value_type::element_type;
        torch::nn::ModuleList list;
        for (std::int64_t i = 0; i < count; ++i) {
            blocks.push_back(std::make_shared<Block>(options.heads, K));
            list->push_back(blocks.back());
        }
        register_module(name, list);
    };
    add_blocks("transformer_blocks", double_blocks_, options.double_blocks);
    add_blocks("single_transformer_blocks", single_blocks_, options.single_blocks);
    norm_out_ = register_module("norm_out", std::make_shared<Modulation>(D, 2));
    proj_out_ = register_module("proj_out", torch::nn::Linear(D, token));
    torch::nn::init::zeros_(proj_out_->weight);
    torch::nn::init::zeros_(proj_out_->bias);
}

STRATA_INLINE at::Tensor SmallFlux::forward(const at::Tensor& latents_BCHW, const at::Tensor& text_BTE,
                                            const at::Tensor& pooled_BE, const at::Tensor& sigma_B) {
    const at::ScalarType type = x_embedder_->weight.scalar_type();
    const std::int64_t H = latents_BCHW.size(2);
    const std::int64_t W = latents_BCHW.size(3);
    const std::int64_t T = text_BTE.size(1);
    if (H % patch != 0 || W % patch != 0)
        throw Error{Errc::bad_value,
                    "SmallFlux got latents of " + std::to_string(H) + " x " + std::to_string(W) +
                        ", and needs multiples of " + std::to_string(patch),
                    "use picture sizes whose edges are multiples of the recipe's alignment()"};
    const RotaryTable rotary = rotary_table(T, H / patch, W / patch, options_.rotary_axes, latents_BCHW.device());

    at::Tensor image = detail::apply(x_embedder_, pack_2x2(latents_BCHW).to(type));
    at::Tensor text = detail::apply(context_embedder_, text_BTE.to(type));
    const at::Tensor conditioning =
        at::silu(time_text_embed_->timestep_embedder->forward(timestep_features(sigma_B).to(type)) +
                 time_text_embed_->text_embedder->forward(pooled_BE.to(type)));
    for (const auto& block : double_blocks_) std::tie(image, text) = block->forward(image, text, conditioning, rotary);
    at::Tensor both = concatenate(text, image, 1);
    for (const auto& block : single_blocks_) both = block->forward(both, conditioning, rotary);
    const std::vector<at::Tensor> mod = norm_out_->forward(conditioning);  // scale first, unlike in the blocks
    image = modulated_norm(both.narrow(1, T, image.size(1)), mod[0], mod[1]);
    return unpack_2x2(detail::apply(proj_out_, image).to(latents_BCHW.scalar_type()), H, W);
}

STRATA_INLINE at::Tensor SmallFlux::loss(const Batch& batch) {
    const at::Tensor& x = batch.latents_BCHW;
    const at::Tensor noise = at::randn_like(x);
    const at::Tensor sigma =
        at::sigmoid(at::randn({x.size(0)}, x.options()) * options_.timestep_deviation + options_.timestep_mean);
    return error_at(batch, noise, sigma);
}

STRATA_INLINE at::Tensor SmallFlux::error_at(const Batch& batch, const at::Tensor& noise_BCHW,
                                             const at::Tensor& sigma_B) {
    const at::Tensor& x = batch.latents_BCHW;
    const at::Tensor s = sigma_B.view({-1, 1, 1, 1});
    const at::Tensor velocity = forward(noise_BCHW * s + x * (1 - s), batch.text_BTE, batch.pooled_BE, sigma_B);
    return (velocity - (noise_BCHW - x)).square().mean();
}

STRATA_INLINE at::Tensor SmallFlux::evaluation_loss(const Batch& batch) {
    const at::Tensor& x = batch.latents_BCHW;
    const auto source = diffusion::NoiseSource::of_pictures(x);
    const at::Tensor noise = source.normal(x.sizes());
    const at::Tensor normal = source.normal({x.size(0)});
    const at::Tensor sigma = at::sigmoid(normal * options_.timestep_deviation + options_.timestep_mean);
    return error_at(batch, noise.to(x.device()), sigma.to(x.device()));
}

}  // namespace strata::models
