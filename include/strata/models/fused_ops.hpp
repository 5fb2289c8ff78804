#pragma once
// strata/models/fused_ops.hpp - differentiable pieces of a transformer block, each one pass over memory on a CPU.
//
// On CPU tensors of fp32 or bf16 these run the kernels of kernels.hpp; on any other device or type, and for widths that
// are no multiple of 16, they are composed of libtorch operations with the same result up to rounding. Norms, softmax
// and their statistics are fp32 in both forms; results have the type of the input.
//
// Shapes: B batch, L tokens, H heads, K width of a head, D = H * K width of a token.

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// norm(x) * (1 + scale) + shift: layer norm without own weights over D, modulated per sample (adaLN, Peebles & Xie
/// 2023, arXiv:2212.09748, section 3.2). x (B, L, D); scale, shift (B, D), chunks of a larger tensor are fine.
at::Tensor modulated_norm(const at::Tensor& x_BLD, const at::Tensor& scale_BD, const at::Tensor& shift_BD);

/// x + gate * h, gate (B, D) per sample.
at::Tensor gated_add(const at::Tensor& x_BLD, const at::Tensor& gate_BD, const at::Tensor& h_BLD);

/// Splits x (B, L, D) into heads, norms each by its root mean square (eps 1e-6, weight (K)) and turns adjacent pairs
/// by the angles of RotaryTable (cosine, sine: (L, K) fp32). Returns (B, H, L, K).
at::Tensor rms_norm_rotate(const at::Tensor& x_BLD, const at::Tensor& weight_K, const at::Tensor& cosine_LK,
                           const at::Tensor& sine_LK);

/// gelu in its tanh form.
at::Tensor gelu_tanh(const at::Tensor& x);

/// a and b one after the other along dim.
at::Tensor concatenate(const at::Tensor& a, const at::Tensor& b, std::int64_t dim);

/// x (..., in) times weight (out, in) transposed, plus bias (out) or an undefined one: one product of matrices, the
/// bias inside it. Up to 8 rows of a weight of a million numbers or more are what models/few_rows.hpp is for, and bf16 where
/// takes_own_products() what models/wide_products.hpp is; both are differentiable once.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// linear() of a and b, (..., A) and (..., B), side by side, weight (out, A + B), without putting the two together. Its
/// gradient for the weight is written once, where that of two slices of it would be padded and added.
at::Tensor linear_of_two(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/fused_ops.ipp>
#endif
