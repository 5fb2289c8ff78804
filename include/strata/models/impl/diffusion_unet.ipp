#pragma once
// strata/models/impl/diffusion_unet.ipp - the loss of U-Nets.

#include <utility>

#include <strata/core/error.hpp>
#include <strata/diffusion/noise_source.hpp>
#include <strata/diffusion/objective.hpp>
#include <strata/models/diffusion_unet.hpp>
#include <strata/models/impl/unet.ipp>

namespace strata::models {

STRATA_INLINE DiffusionUnet::DiffusionUnet(Kind kind, UnetOptions options, diffusion::DdpmObjective objective)
    : Unet{std::move(options)}, objective_{std::move(objective)} {
    const bool has_addition = this->options().addition_time_dim > 0;
    if (has_addition == (kind == Kind::sdxl)) return;
    throw Error{Errc::bad_model_options,
                has_addition ? "an Sd15Unet got options with time ids and a pooled caption"
                             : "an SdxlUnet got options without time ids and a pooled caption",
                has_addition ? "make an SdxlUnet of these options" : "make an Sd15Unet of these options"};
}

STRATA_INLINE at::Tensor DiffusionUnet::error(const Batch& batch, const diffusion::NoiseSource& source) {
    diffusion::Noised noised = objective_.draw(batch.latents_BCHW, source);
    const auto predict = [&] {
        return forward(noised.input, noised.timestep_B, batch.text_BSE, {batch.pooled_BP, batch.time_ids_B6});
    };
    if (batch.is_regularisation_data) noised.target = without_adapters(predict).to(at::kFloat);
    return noised.loss(predict());
}

STRATA_INLINE at::Tensor DiffusionUnet::loss(const Batch& batch) {
    return error(batch, diffusion::NoiseSource::of_process());
}

STRATA_INLINE at::Tensor DiffusionUnet::evaluation_loss(const Batch& batch) {
    return error(batch, diffusion::NoiseSource::of_pictures(batch.latents_BCHW));
}

}  // namespace strata::models
