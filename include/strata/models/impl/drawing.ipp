#pragma once
// strata/models/impl/drawing.ipp - seeded noise a prompt, and the samplers' loop with guidance.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <strata/core/mix.hpp>
#include <strata/models/drawing.hpp>

namespace strata::models {

STRATA_INLINE PromptNoise::PromptNoise(std::uint64_t seed, std::int64_t first, std::int64_t count,
                                       const LatentShape& shape)
    : shape_{shape} {
    // A generator seeds a Mersenne twister with 32 bits.
    for (std::int64_t i = 0; i < count; ++i)
        generators_.push_back(at::detail::createCPUGenerator(core::seed_of_32_bits(seed, first + i)));
}

STRATA_INLINE at::Tensor PromptNoise::next() {
    const auto count = static_cast<std::int64_t>(generators_.size());
    const at::Tensor noise = at::empty({count, shape_.C, shape_.H, shape_.W}, at::TensorOptions().dtype(at::kFloat));
    for (std::int64_t i = 0; i < count; ++i) noise.select(0, i).normal_(0, 1, generators_[static_cast<std::size_t>(i)]);
    return noise;
}

STRATA_INLINE at::Tensor sample_noise(std::uint64_t seed, std::int64_t index, std::int64_t C, std::int64_t H,
                                      std::int64_t W) {
    return PromptNoise{seed, index, 1, {C, H, W}}.next().select(0, 0);
}

STRATA_INLINE at::Tensor draw_latents(const Drawing& drawing, std::int64_t first, std::int64_t count,
                                      diffusion::Denoiser model) {
    PromptNoise noise{drawing.seed, first, count, drawing.shape};
    return drawing.sampler.draw(
        noise.next().to(drawing.device),
        [&](const at::Tensor& x, double timestep) {
            return diffusion::guided_call(model, x, timestep, drawing.guidance);
        },
        {.fresh_noise = [&](int) { return noise.next().to(drawing.device); }, .after_step = {}});
}

STRATA_INLINE at::Tensor prompts_and_empty(std::span<const data::NamedTensors> prompts, const data::NamedTensors& empty,
                                           const char* name, const diffusion::Guidance& guidance) {
    std::vector<at::Tensor> rows;
    for (const data::NamedTensors& prompt : prompts) rows.push_back(prompt.at(name));
    if (guidance.is_on()) rows.insert(rows.end(), prompts.size(), empty.at(name));
    return at::stack(rows);
}

}  // namespace strata::models
