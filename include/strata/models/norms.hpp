#pragma once
// strata/models/norms.hpp - group norm, layer norm and root-mean-square norm that compute in fp32 whatever they are given.

#include <cstdint>

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// Group norm (Wu & He 2018, arXiv:1803.08494) with weight and bias of a channel each. x (B, C, ...) -> as x.
struct GroupNorm final : torch::nn::Module {
    GroupNorm(std::int64_t groups, std::int64_t C, double eps);
    at::Tensor forward(const at::Tensor& x);
    /// silu(forward(x)), in one pass where it can be.
    at::Tensor silu_of_norm(const at::Tensor& x);
    std::int64_t groups;
    double eps;
    at::Tensor weight, bias;
};

/// Layer norm (Ba et al. 2016, arXiv:1607.06450) over the last D with weight and bias. x (..., D) -> as x.
struct LayerNorm final : torch::nn::Module {
    explicit LayerNorm(std::int64_t D, double eps = 1e-5);
    at::Tensor forward(const at::Tensor& x);
    double eps;
    at::Tensor weight, bias;
};

/// x / sqrt(mean(x^2) + eps) * weight over the last D (Zhang & Sennrich 2019, arXiv:1910.07467). x (..., D) -> as x.
struct RmsNorm final : torch::nn::Module {
    explicit RmsNorm(std::int64_t D, double eps = 1e-6);
    at::Tensor forward(const at::Tensor& x);
    double eps;
    at::Tensor weight;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/norms.ipp>
#endif
