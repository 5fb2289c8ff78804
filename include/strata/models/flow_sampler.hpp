#pragma once
// strata/models/flow_sampler.hpp - from noise to latents along the learnt velocity, with guidance.

#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/encoders.hpp>

namespace strata::models {

namespace detail {

/// Where a model computes: where its parameters are.
template <class Model>
[[nodiscard]] at::Device device_of(const Model& model) {
    if constexpr (requires { model.parameters(); }) {
        const auto parameters = model.parameters();
        if (!parameters.empty()) return parameters.front().device();
    }
    return at::kCPU;
}

}  // namespace detail

/// How sample_euler draws.
struct SamplerOptions {
    int steps = 24;
    double guidance = 3.0;  ///< 1 follows the caption alone; more pushes away from what no caption would give
    std::uint64_t seed = 0;
};

/// Noise (C, H, W) fp32 that depends only on (seed, index, shape): every prompt has its own generator.
at::Tensor sample_noise(std::uint64_t seed, std::int64_t index, std::int64_t C, std::int64_t H, std::int64_t W);

/// Draws one picture per prompt: Euler steps over sigma = 1 ... 0 in equal parts, along
/// v = v_empty + guidance * (v_prompt - v_empty) (classifier-free guidance, Ho & Salimans 2022, arXiv:2207.12598).
///
///   model   forward(latents, text, pooled, sigma) as in SmallFlux; called without gradient recording, on both halves
///           of one doubled batch, or on the prompts alone when guidance is 1
///   empty   embedding of the empty caption
///   first   index of prompts[0] in the whole list: a rank that draws its share gets the pictures that one rank
///           drawing all would get
/// Returns latents (prompts, C, H, W) fp32 on the CPU. Local.
template <class Model>
at::Tensor sample_euler(Model& model, const std::vector<TextEmbedding>& prompts, const TextEmbedding& empty,
                        std::int64_t C, std::int64_t H, std::int64_t W, const SamplerOptions& options = {},
                        std::int64_t first = 0) {
    const at::NoGradGuard no_gradients;
    const auto count = static_cast<std::int64_t>(prompts.size());
    const bool guided = options.guidance != 1.0;
    std::vector<at::Tensor> noise, text, pooled;
    for (std::int64_t i = 0; i < count; ++i) {
        noise.push_back(sample_noise(options.seed, first + i, C, H, W));
        text.push_back(prompts[static_cast<std::size_t>(i)].tokens);
        pooled.push_back(prompts[static_cast<std::size_t>(i)].pooled);
    }
    if (guided) {
        text.insert(text.end(), prompts.size(), empty.tokens);
        pooled.insert(pooled.end(), prompts.size(), empty.pooled);
    }
    const at::Device device = detail::device_of(model);
    const at::Tensor text_BTE = at::stack(text).to(device);
    const at::Tensor pooled_BE = at::stack(pooled).to(device);
    at::Tensor x = at::stack(noise).to(device);
    for (int step = 0; step < options.steps; ++step) {
        const double sigma = 1.0 - static_cast<double>(step) / options.steps;
        const at::Tensor input = guided ? at::cat({x, x}) : x;
        at::Tensor velocity = model.forward(input, text_BTE, pooled_BE, at::full({input.size(0)}, sigma, x.options()));
        if (guided) {
            const at::Tensor unguided = velocity.narrow(0, count, count);
            velocity = unguided + options.guidance * (velocity.narrow(0, 0, count) - unguided);
        }
        x = x - velocity / options.steps;
    }
    return x.cpu();
}

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/flow_sampler.ipp>
#endif
