#pragma once
// strata/models/unet_ops.hpp - differentiable pieces of U-Nets, autoencoders and encoders, each one pass over memory on a CPU.
//
// As fused_ops.hpp: on CPU tensors of fp32 or bf16 these run the kernels of unet_kernels.hpp; on any other device or
// type, and for sizes that are no multiple of 16, they are composed of libtorch operations with the same result up to
// rounding. Norms and their statistics are fp32 in both forms; results have the type of the input.

#include <cstdint>

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// Group norm (Wu & He 2018, arXiv:1803.08494) of x (B, C, ...) with weight and bias (C), and silu of it where
/// `with_silu`. C is a multiple of groups.
at::Tensor group_norm(const at::Tensor& x, std::int64_t groups, const at::Tensor& weight_C, const at::Tensor& bias_C,
                      double eps, bool with_silu = false);

/// Layer norm (Ba et al. 2016, arXiv:1607.06450) over the last dimension of x (..., D) with weight and bias (D).
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight_D, const at::Tensor& bias_D, double eps);

/// value * gelu(gate) of x (..., 2D) = [value, gate] (GEGLU, Shazeer 2020, arXiv:2002.05202), gelu by the error
/// function. (..., D)
at::Tensor geglu(const at::Tensor& x);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/unet_ops.ipp>
#endif
