#pragma once
// strata/models/flux.hpp - Flux: a FluxTransformer that is trained by flow matching.

#include <cstdint>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/diffusion/noise_source.hpp>
#include <strata/diffusion/objective.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/flux_transformer.hpp>

namespace strata::models {

/// How a Flux is trained. The defaults are those of diffusers' scripts for Flux.1 [dev]: logit-normal levels, no shift.
struct FluxTraining {
    diffusion::FlowScheduleOptions schedule = {};
    diffusion::FlowObjectiveOptions flow = {};
    /// What the guidance embedding is told, uniform between the two. 1 teaches pictures as they are without guidance, and
    /// leaves what was distilled for larger scales mostly alone; 3.5 teaches them at the scale that people draw with, and
    /// undoes the distillation. Not used without embedding.
    double least_guidance = 1.0;
    double most_guidance = 1.0;
    double drawing_guidance = 3.5;  ///< what it is told when forward() is asked for pictures
    /// True: padding of captions is not looked at. Flux.1 was trained to look at it, and has to learn the other.
    /// Needs a recipe whose batches have a mask.
    bool masks_text = false;
};

/// Flux.1 and its fine-tunes. Takes latents (B, C, H, W) fp32, not packed, C = token_values / 4, scaled as its
/// autoencoder's are.
class Flux : public FluxTransformer {
public:
    using Batch = FluxBatch;  ///< of Flux1Recipe, or a FluxRecipe

    /// A token is a square of this many latents an edge, and so H and W of the latents are its multiples.
    static constexpr std::int64_t patch = 2;

    /// Throws Errc::bad_model_options (output_values that are not token_values, or no multiple of 4; guidances that are
    /// no numbers in order), and Errc::bad_diffusion_options.
    explicit Flux(const FluxOptions& options = {}, const FluxTraining& training = {});

    /// The velocity noise - x at sigma * noise + (1 - sigma) * x, (B, C, H, W) in the type of the latents.
    ///
    ///   latents  (B, C, H, W), H and W multiples of patch;  sigma (B) in [0, 1];  guidance (B), undefined without its
    ///            embedding
    ///   mask     (B, T), as FluxInput has it
    /// Throws Errc::bad_value for an H or W that is no multiple of patch, and as FluxTransformer::forward().
    at::Tensor velocity(const at::Tensor& latents_BCHW, const at::Tensor& text_BTE, const at::Tensor& pooled_BE,
                        const at::Tensor& sigma_B, const at::Tensor& guidance_B, const at::Tensor& text_mask_BT = {});

    /// The same at drawing_guidance, without a mask, for samplers: sample_flow().
    at::Tensor forward(const at::Tensor& latents_BCHW, const at::Tensor& text_BTE, const at::Tensor& pooled_BE,
                       const at::Tensor& sigma_B);

    /// Mean over pictures of the weighted squared error of the velocity (diffusion::FlowObjective). Noise, level and
    /// guidance come from libtorch's default CPU generator, in this order.
    at::Tensor loss(const Batch& batch);

    /// The same at noise and a level that follow from each picture's latents alone, whatever batch it is in, and at the
    /// middle of the two guidances: what a trainer evaluates with.
    at::Tensor evaluation_loss(const Batch& batch);

    [[nodiscard]] const FluxTraining& training_options() const noexcept { return training_; }

private:
    at::Tensor error_of(const Batch& batch, const diffusion::NoiseSource& source, bool draws_guidance);

    FluxTraining training_;
    diffusion::FlowObjective objective_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/flux.ipp>
#endif
