#pragma once
// strata/models/impl/small_flux.ipp - bodies of SmallFlux.

#include <cstdint>
#include <string>

#include <strata/core/error.hpp>
#include <strata/diffusion/noise_source.hpp>
#include <strata/models/impl/flux_transformer.ipp>
#include <strata/models/packing.hpp>
#include <strata/models/small_flux.hpp>

namespace strata::models {

namespace detail {

inline FluxOptions flux_options_of(const SmallFluxOptions& options) {
    const RotaryAxes& axes = options.rotary_axes;
    if ((axes[0] + axes[1] + axes[2]) % 16 != 0 || axes[0] % 2 != 0 || axes[1] % 2 != 0 || axes[2] % 2 != 0)
        throw Error{Errc::bad_model_options,
                    "SmallFluxOptions::rotary_axes are {" + std::to_string(axes[0]) + ", " + std::to_string(axes[1]) +
                        ", " + std::to_string(axes[2]) + "}",
                    "give three even widths whose sum is a multiple of 16, as {16, 24, 24}"};
    return {.token_values = 4 * options.latent_channels,
            .output_values = 4 * options.latent_channels,
            .text_width = options.text_width,
            .pooled_width = options.text_width,
            .heads = options.heads,
            .rotary_axes = axes,
            .double_blocks = options.double_blocks,
            .single_blocks = options.single_blocks,
            .has_guidance = false,
            .start = FluxStart::identity};
}

}  // namespace detail

STRATA_INLINE SmallFlux::SmallFlux(const SmallFluxOptions& options)
    : FluxTransformer(detail::flux_options_of(options)), options_(options) {}

STRATA_INLINE at::Tensor SmallFlux::forward(const at::Tensor& latents_BCHW, const at::Tensor& text_BTE,
                                            const at::Tensor& pooled_BE, const at::Tensor& sigma_B) {
    const std::int64_t H = latents_BCHW.size(2);
    const std::int64_t W = latents_BCHW.size(3);
    if (H % patch != 0 || W % patch != 0)
        throw Error{Errc::bad_value,
                    "SmallFlux got latents of " + std::to_string(H) + " x " + std::to_string(W) +
                        ", and needs multiples of " + std::to_string(patch),
                    "use picture sizes whose edges are multiples of the recipe's alignment()"};
    return unpack_2x2(FluxTransformer::forward({.tokens_BIP = pack_2x2(latents_BCHW),
                                                .text_BTE = text_BTE,
                                                .pooled_BE = pooled_BE,
                                                .sigma_B = sigma_B,
                                                .image_ids_I3 = grid_ids(H / patch, W / patch)}),
                      H, W);
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
    const auto predict = [&] {
        return forward(noise_BCHW * s + x * (1 - s), batch.text_BTE, batch.pooled_BE, sigma_B);
    };
    const at::Tensor target = batch.is_regularisation_data ? without_adapters(predict) : noise_BCHW - x;
    return (predict() - target).square().mean();
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
