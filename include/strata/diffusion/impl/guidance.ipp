#pragma once
// strata/diffusion/impl/guidance.ipp - bodies of guidance.

#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <strata/diffusion/guidance.hpp>
#include <strata/diffusion/impl/sampler.ipp>

namespace strata::diffusion {

STRATA_INLINE at::Tensor guided(const at::Tensor& prompt, const at::Tensor& empty, const Guidance& guidance) {
    const at::Tensor prompt_fp32 = prompt.to(at::kFloat);
    const at::Tensor empty_fp32 = empty.to(at::kFloat);
    const at::Tensor pushed = empty_fp32 + (prompt_fp32 - empty_fp32) * guidance.scale;
    if (guidance.rescale == 0) return pushed;
    std::vector<std::int64_t> shape_of_ones(static_cast<std::size_t>(prompt.dim()), 1);
    shape_of_ones[0] = prompt.size(0);
    const auto deviation = [](const at::Tensor& x) { return x.flatten(1).std(at::IntArrayRef{1}, true); };
    constexpr double least = 1e-12;  // a model that has learnt nothing predicts zeros, which stay zeros
    const at::Tensor ratio = (deviation(prompt_fp32) / deviation(pushed).clamp_min(least)).view(shape_of_ones);
    return pushed * (ratio * guidance.rescale + (1 - guidance.rescale));
}

STRATA_INLINE at::Tensor guided_call(Denoiser model, const at::Tensor& x, double timestep, const Guidance& guidance) {
    if (!guidance.is_on()) return model(x, timestep);
    const at::Tensor both = model(at::cat({x, x}), timestep);
    const std::int64_t B = x.size(0);
    return guided(both.narrow(0, 0, B), both.narrow(0, B, B), guidance);
}

}  // namespace strata::diffusion
