#pragma once
// strata/models/impl/flux.ipp - bodies of Flux.

#include <cmath>
#include <string>

#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>
#include <strata/diffusion/objective.hpp>
#include <strata/models/flux.hpp>
#include <strata/models/impl/flux_transformer.ipp>
#include <strata/models/packing.hpp>

namespace strata::models {

namespace detail {

inline const FluxOptions& checked(const FluxOptions& options, const FluxTraining& training) {
    FluxProblems problems;
    if (options.token_values % 4 != 0 || options.output_values != options.token_values)
        problems.add("FluxOptions has token_values " + std::to_string(options.token_values) + " and output_values " +
                     std::to_string(options.output_values) + ", and a velocity is as large as 2 x 2 latents");
    const bool in_order = training.least_guidance <= training.most_guidance;  // false with NaN among them
    if (!in_order || !std::isfinite(training.most_guidance - training.least_guidance) ||
        !std::isfinite(training.drawing_guidance))
        problems.add("FluxTraining has guidances from " + OptionCheck::shown(training.least_guidance) + " to " +
                     OptionCheck::shown(training.most_guidance) + ", and draws with " +
                     OptionCheck::shown(training.drawing_guidance));
    problems.finish(
        Errc::bad_model_options,
        "give four values for each channel of latents, as 64, and guidances from small to large, as 1 and 1");
    return options;
}

}  // namespace detail

STRATA_INLINE Flux::Flux(const FluxOptions& options, const FluxTraining& training)
    : FluxTransformer(detail::checked(options, training)),
      training_(training),
      objective_(diffusion::FlowSchedule{training.schedule}, training.flow) {}

STRATA_INLINE at::Tensor Flux::velocity(const at::Tensor& latents_BCHW, const at::Tensor& text_BTE,
                                        const at::Tensor& pooled_BE, const at::Tensor& sigma_B,
                                        const at::Tensor& guidance_B, const at::Tensor& text_mask_BT) {
    if (latents_BCHW.dim() != 4 || latents_BCHW.size(2) % patch != 0 || latents_BCHW.size(3) % patch != 0)
        throw Error{Errc::bad_value,
                    "Flux got latents " + detail::shape_text(latents_BCHW.sizes()) +
                        ", and takes (pictures, channels, height, width) with edges that are multiples of " +
                        std::to_string(patch),
                    "use picture sizes whose edges are multiples of the recipe's alignment()"};
    const std::int64_t H = latents_BCHW.size(2);
    const std::int64_t W = latents_BCHW.size(3);
    FluxInput input;
    input.tokens_BIP = pack_2x2(latents_BCHW);
    input.text_BTE = text_BTE;
    input.pooled_BE = pooled_BE;
    input.sigma_B = sigma_B;
    input.guidance_B = guidance_B;
    input.image_ids_I3 = grid_ids(H / patch, W / patch);
    input.text_mask_BT = text_mask_BT;
    return unpack_2x2(FluxTransformer::forward(input), H, W);
}

STRATA_INLINE at::Tensor Flux::forward(const at::Tensor& latents_BCHW, const at::Tensor& text_BTE,
                                       const at::Tensor& pooled_BE, const at::Tensor& sigma_B) {
    const at::Tensor guidance_B =
        flux_options().has_guidance ? at::full_like(sigma_B, training_.drawing_guidance) : at::Tensor{};
    return velocity(latents_BCHW, text_BTE, pooled_BE, sigma_B, guidance_B);
}

STRATA_INLINE at::Tensor Flux::loss(const Batch& batch) {
    return error_of(batch, diffusion::NoiseSource::of_process(), training_.least_guidance < training_.most_guidance);
}

STRATA_INLINE at::Tensor Flux::evaluation_loss(const Batch& batch) {
    return error_of(batch, diffusion::NoiseSource::of_pictures(batch.latents_BCHW), false);
}

STRATA_INLINE at::Tensor Flux::error_of(const Batch& batch, const diffusion::NoiseSource& source, bool draws_guidance) {
    const at::Tensor& x = batch.latents_BCHW;
    if (training_.masks_text && !batch.text_mask_BT.defined())
        throw Error{Errc::bad_value, "FluxTraining::masks_text is set, and a batch of Flux has no text_mask_BT",
                    "use a recipe whose batches have one, as Flux1Recipe, or leave masks_text out"};
    const std::int64_t picture_tokens = x.size(2) / patch * (x.size(3) / patch);
    diffusion::Noised noised = objective_.draw(x, source, picture_tokens);
    at::Tensor guidance_B;
    if (flux_options().has_guidance) {
        const double least = training_.least_guidance;
        const double most = training_.most_guidance;
        guidance_B = draws_guidance ? source.uniform({x.size(0)}).mul(most - least).add(least).to(x.device())
                                    : at::full({x.size(0)}, (least + most) / 2, noised.sigma_B.options());
    }
    const auto predict = [&] {
        return velocity(noised.input, batch.text_BTE, batch.pooled_BE, noised.sigma_B, guidance_B,
                        training_.masks_text ? batch.text_mask_BT : at::Tensor{});
    };
    if (batch.is_regularisation_data) noised.target = without_adapters(predict).to(at::kFloat);
    return noised.loss(predict());
}

}  // namespace strata::models
