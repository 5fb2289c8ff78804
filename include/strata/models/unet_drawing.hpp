#pragma once
// strata/models/unet_drawing.hpp - draw_by_unet(): latents of prompts by a U-Net of SD 1.5's or SDXL's kind.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <strata/core/inline.hpp>
#include <strata/data/recipe.hpp>
#include <strata/diffusion/ddpm_schedule.hpp>
#include <strata/diffusion/sampler.hpp>
#include <strata/diffusion/solver.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::models {

/// The solver that draws: the authors', or the one that is asked for, on the levels that the authors' visits.
///
///   of_authors  as a model's scheduler_config.json has it
/// A schedule that ends in noise alone is drawn along `trailing` levels, which begin there (Lin et al. 2023, section 3.3).
[[nodiscard]] diffusion::SolverOptions unet_solver(const diffusion::SolverOptions& of_authors,
                                                   const diffusion::DdpmSchedule& schedule,
                                                   const SamplerOptions& options);

/// What draws with a U-Net. No tensors. Throws Errc::bad_diffusion_options for steps that the schedule does not have, and for epsilon that begins without any
/// signal.
///
///   model       an SdxlUnet or Sd15Unet
///   of_authors  see unet_solver()
template <class Unet>
[[nodiscard]] diffusion::Sampler unet_sampler(const Unet& model, const diffusion::SolverOptions& of_authors,
                                              const SamplerOptions& options) {
    const auto& objective = model.objective();
    return {objective.schedule(), objective.options().prediction,
            unet_solver(of_authors, objective.schedule(), options)};
}

/// Latents of prompts one after another, so that a picture has the same bits in any company, and memory is that of one.
///
///   recipe      SdxlRecipe, Sd15Recipe or one of their shape: captions have "tokens", and "pooled" where there are time ids;
///               pictures have "latents"
///   model       an SdxlUnet or Sd15Unet
///   of_authors  see unet_solver()
///   time_ids_6  what SDXL is told of size and crop (sdxl_time_ids); undefined for SD 1.5
///   others      as of DrawingRecipe, train/gallery.hpp
/// Returns (C, h, w) fp32 on the model's device a prompt. Collective where the model's forward pass is. Throws as unet_sampler() does.
template <data::Recipe R, class Unet>
[[nodiscard]] std::vector<at::Tensor> draw_by_unet(const R& recipe, Unet& model,
                                                   std::span<const data::NamedTensors> prompts,
                                                   const data::NamedTensors& empty, const pictures::PictureSize& size,
                                                   const diffusion::SolverOptions& of_authors,
                                                   const at::Tensor& time_ids_6, const SamplerOptions& options,
                                                   std::int64_t first) {
    const at::NoGradGuard no_gradients;
    const at::Device device = detail::device_of(model);
    const diffusion::Sampler sampler = unet_sampler(model, of_authors, options);
    const Drawing drawing{sampler,
                          {.scale = options.guidance, .rescale = options.rescale},
                          options.seed,
                          latent_shape(recipe, size),
                          device};
    const bool has_addition = time_ids_6.defined();
    std::vector<at::Tensor> latents;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        const auto told = [&](const char* name) {
            return prompts_and_empty(prompts.subspan(i, 1), empty, name, drawing.guidance).to(device, at::kFloat);
        };
        const at::Tensor text_BSE = told("tokens");
        const at::Tensor pooled_BP = has_addition ? told("pooled") : at::Tensor{};
        const at::Tensor ids_B6 = has_addition ? time_ids_6.to(device).expand({text_BSE.size(0), 6}) : at::Tensor{};
        const at::Tensor drawn_BCHW = draw_latents(
            drawing, first + static_cast<std::int64_t>(i), 1, [&](const at::Tensor& x_BCHW, double timestep) {
                return model.forward(x_BCHW, at::full({x_BCHW.size(0)}, timestep, x_BCHW.options()), text_BSE,
                                     {pooled_BP, ids_B6});
            });
        latents.push_back(drawn_BCHW.select(0, 0));
    }
    return latents;
}

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/unet_drawing.ipp>
#endif
