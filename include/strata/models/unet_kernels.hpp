#pragma once
// strata/models/unet_kernels.hpp - the inner loops of U-Nets, autoencoders and encoders that libtorch runs slowly in bf16 on a CPU.
//
// Plain pointers, no libtorch, one thread; as models/kernels.hpp. Sums, exponentials and what is kept of a norm are
// fp32; gradients of a norm's weight and bias are too.
//
// Shapes: B batch, C channels, G groups of C / G of them, N positions of a channel, a multiple of 16; M rows of D
// numbers, a multiple of 16.

#include <cstdint>

#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>
#include <strata/models/detail/group_norm_shape.hpp>

namespace strata::models::kernels {

/// y = norm(x) * weight + bias, norm over a sample's group, or silu of that; x, y (B, C, N), weight, bias (C). Keeps mean
/// and 1/sqrt(var + eps) of each group in statistics (B, G, 2) for the backward pass.
void group_norm(float* y, float* statistics, const float* x, const float* weight, const float* bias,
                const GroupNormShape& shape);
void group_norm(bf16* y, float* statistics, const bf16* x, const bf16* weight, const bf16* bias,
                const GroupNormShape& shape);

/// Gradients of group_norm: grad_x (B, C, N), and grad_weight and grad_bias (C), which are overwritten.
void group_norm_backward(float* grad_x, float* grad_weight, float* grad_bias, const float* grad_y, const float* x,
                         const float* statistics, const float* weight, const float* bias, const GroupNormShape& shape);
void group_norm_backward(bf16* grad_x, float* grad_weight, float* grad_bias, const bf16* grad_y, const bf16* x,
                         const float* statistics, const bf16* weight, const bf16* bias, const GroupNormShape& shape);

/// y = norm(x) * weight + bias of each row; x, y (M, D), weight, bias (D); statistics (M, 2) as those of group_norm.
void layer_norm(float* y, float* statistics, const float* x, const float* weight, const float* bias, std::int64_t M,
                std::int64_t D, float eps);
void layer_norm(bf16* y, float* statistics, const bf16* x, const bf16* weight, const bf16* bias, std::int64_t M,
                std::int64_t D, float eps);

/// Gradients of layer_norm: grad_x (M, D), and grad_weight and grad_bias (D), which are overwritten.
void layer_norm_backward(float* grad_x, float* grad_weight, float* grad_bias, const float* grad_y, const float* x,
                         const float* statistics, const float* weight, std::int64_t M, std::int64_t D);
void layer_norm_backward(bf16* grad_x, float* grad_weight, float* grad_bias, const bf16* grad_y, const bf16* x,
                         const float* statistics, const bf16* weight, std::int64_t M, std::int64_t D);

/// y (M, D) = value * gelu(gate) of rows [value, gate], x (M, 2D); gelu by the error function, within 2e-7.
void geglu(float* y, const float* x, std::int64_t M, std::int64_t D);
void geglu(bf16* y, const bf16* x, std::int64_t M, std::int64_t D);

/// grad_x (M, 2D) of geglu.
void geglu_backward(float* grad_x, const float* grad_y, const float* x, std::int64_t M, std::int64_t D);
void geglu_backward(bf16* grad_x, const bf16* grad_y, const bf16* x, std::int64_t M, std::int64_t D);

}  // namespace strata::models::kernels

#ifndef STRATA_COMPILED
#include <strata/models/impl/unet_kernels.ipp>
#endif
