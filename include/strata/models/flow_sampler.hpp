#pragma once
// strata/models/flow_sampler.hpp - from noise to latents along the learnt velocity, with guidance.

#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include <strata/diffusion/flow_schedule.hpp>
#include <strata/diffusion/guidance.hpp>
#include <strata/diffusion/sampler.hpp>
#include <strata/diffusion/solver.hpp>
#include <strata/diffusion/with_method.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/encoders.hpp>
#include <strata/models/sampler_options.hpp>

namespace strata::models {

/// The solver that draws along a flow: Euler's steps where no other is asked for.
[[nodiscard]] constexpr diffusion::SolverOptions flow_solver(const SamplerOptions& options) noexcept {
    diffusion::SolverOptions solver =
        options.method ? diffusion::with_method({}, *options.method) : diffusion::SolverOptions{};
    solver.steps = options.steps;
    return solver;
}

/// Draws one picture per prompt, all together, over sigma = 1 ... 0 in equal parts, along
/// v = v_empty + guidance * (v_prompt - v_empty) (classifier-free guidance, Ho & Salimans 2022, arXiv:2207.12598).
///
///   model   forward(latents, text, pooled, sigma) as in SmallFlux; called without gradient recording, on both halves
///           of one doubled batch, or on the prompts alone when guidance is 1
///   empty   embedding of the empty caption
///   first   index of prompts[0] in the whole list: a rank that draws its share gets the pictures that one rank
///           drawing all would get, but for the rounding of batches of another size
/// Returns latents (prompts, C, H, W) fp32 on the CPU. Local.
template <class Model>
at::Tensor sample_flow(Model& model, const std::vector<TextEmbedding>& prompts, const TextEmbedding& empty,
                       std::int64_t C, std::int64_t H, std::int64_t W, const SamplerOptions& options = {},
                       std::int64_t first = 0) {
    const at::NoGradGuard no_gradients;
    const diffusion::FlowSchedule schedule{{.shift = 1, .dynamic = false}};
    const diffusion::Sampler sampler{schedule, flow_solver(options), H * W};
    const Drawing drawing{sampler,
                          {.scale = options.guidance, .rescale = options.rescale},
                          options.seed,
                          {C, H, W},
                          detail::device_of(model)};
    std::vector<at::Tensor> text, pooled;
    for (const TextEmbedding& prompt : prompts) {
        text.push_back(prompt.tokens);
        pooled.push_back(prompt.pooled);
    }
    if (drawing.guidance.is_on()) {
        text.insert(text.end(), prompts.size(), empty.tokens);
        pooled.insert(pooled.end(), prompts.size(), empty.pooled);
    }
    const at::Tensor text_BTE = at::stack(text).to(drawing.device);
    const at::Tensor pooled_BE = at::stack(pooled).to(drawing.device);
    return draw_latents(drawing, first, static_cast<std::int64_t>(prompts.size()),
                        [&](const at::Tensor& x, double timestep) {
                            const double sigma = timestep / schedule.timesteps();
                            return model.forward(x, text_BTE, pooled_BE, at::full({x.size(0)}, sigma, x.options()));
                        })
        .cpu();
}

}  // namespace strata::models
