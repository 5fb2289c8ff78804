#pragma once
// strata/models/kernels.hpp - the inner loops of a transformer block that libtorch runs slowly in bf16 on a CPU.
//
// Plain pointers, no libtorch, one thread. Number formats: `float`, or bf16; sums,
// norms, exponentials and parameters of a norm are fp32 inside. Every body exists for AVX-512, AVX2 and the baseline,
// and the first call picks one; results differ between them only in rounding.
//
// Shapes: B batch, L tokens, H heads, K width of a head, D = H * K width of a token. D and K are multiples of 16.

#include <cstdint>

#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>
#include <strata/models/kernel_rows.hpp>

namespace strata::models::kernels {

/// y = norm(x) * (1 + scale) + shift, norm(x) = (x - mean) / sqrt(var + eps) over D; x, y (B, L, D); scale, shift (B, D).
/// Keeps mean and 1/sqrt(var + eps) of each token in statistics (B, L, 2) for the backward pass.
void modulated_norm(float* y, float* statistics, const float* x, Rows<float> scale, Rows<float> shift, std::int64_t B,
                    std::int64_t L, std::int64_t D, float eps);
void modulated_norm(bf16* y, float* statistics, const bf16* x, Rows<bf16> scale, Rows<bf16> shift, std::int64_t B,
                    std::int64_t L, std::int64_t D, float eps);

/// Gradients of modulated_norm: grad_x (B, L, D); grad_scale, grad_shift (B, D) are overwritten.
void modulated_norm_backward(float* grad_x, float* grad_scale, float* grad_shift, const float* grad_y, const float* x,
                             const float* statistics, Rows<float> scale, std::int64_t B, std::int64_t L,
                             std::int64_t D);
void modulated_norm_backward(bf16* grad_x, float* grad_scale, float* grad_shift, const bf16* grad_y, const bf16* x,
                             const float* statistics, Rows<bf16> scale, std::int64_t B, std::int64_t L, std::int64_t D);

/// y = x + gate * h; x, h, y (B, L, D), gate (B, D).
void gated_add(float* y, const float* x, Rows<float> gate, const float* h, std::int64_t B, std::int64_t L,
               std::int64_t D);
void gated_add(bf16* y, const bf16* x, Rows<bf16> gate, const bf16* h, std::int64_t B, std::int64_t L, std::int64_t D);

/// Gradients of gated_add for h (B, L, D) and gate (B, D, overwritten); the one for x is grad_y itself.
void gated_add_backward(float* grad_h, float* grad_gate, const float* grad_y, Rows<float> gate, const float* h,
                        std::int64_t B, std::int64_t L, std::int64_t D);
void gated_add_backward(bf16* grad_h, float* grad_gate, const bf16* grad_y, Rows<bf16> gate, const bf16* h,
                        std::int64_t B, std::int64_t L, std::int64_t D);

/// y (B, H, L, K) = rotate(x / sqrt(mean(x^2) + eps) * weight) for x (B, L, H, K), weight (K); the mean is over K.
///
///   cosine, sine  (L, K): for the pair (2i, 2i+1) both entries of cosine hold cos a, sine holds (-sin a, sin a), so
///                 that rotate(x) = x * cosine + swap_pairs(x) * sine turns adjacent pairs by a
void rms_norm_rotate(float* y, const float* x, const float* weight, const float* cosine, const float* sine,
                     std::int64_t B, std::int64_t L, std::int64_t H, std::int64_t K, float eps);
void rms_norm_rotate(bf16* y, const bf16* x, const bf16* weight, const float* cosine, const float* sine, std::int64_t B,
                     std::int64_t L, std::int64_t H, std::int64_t K, float eps);

/// Gradients of rms_norm_rotate: grad_x (B, L, H, K) from grad_y (B, H, L, K); grad_weight (K) is overwritten.
void rms_norm_rotate_backward(float* grad_x, float* grad_weight, const float* grad_y, const float* x,
                              const float* weight, const float* cosine, const float* sine, std::int64_t B,
                              std::int64_t L, std::int64_t H, std::int64_t K, float eps);
void rms_norm_rotate_backward(bf16* grad_x, float* grad_weight, const bf16* grad_y, const bf16* x, const bf16* weight,
                              const float* cosine, const float* sine, std::int64_t B, std::int64_t L, std::int64_t H,
                              std::int64_t K, float eps);

/// Each of `rows` rows of `n` scores, in place: softmax(scale * s).
void softmax(float* s, std::int64_t rows, std::int64_t n, float scale);
void softmax(bf16* s, std::int64_t rows, std::int64_t n, float scale);

/// Gradient of softmax for its probabilities p; grad (rows, n) is that of p on entry and that of s on return.
void softmax_backward(float* grad, const float* p, std::int64_t rows, std::int64_t n, float scale);
void softmax_backward(bf16* grad, const bf16* p, std::int64_t rows, std::int64_t n, float scale);

/// y = gelu(x), the tanh form: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) (Hendrycks & Gimpel 2016). Any n.
void gelu(float* y, const float* x, std::int64_t n);
void gelu(bf16* y, const bf16* x, std::int64_t n);

/// grad_x = grad_y * gelu'(x).
void gelu_backward(float* grad_x, const float* grad_y, const float* x, std::int64_t n);
void gelu_backward(bf16* grad_x, const bf16* grad_y, const bf16* x, std::int64_t n);

}  // namespace strata::models::kernels

#ifndef STRATA_COMPILED
#include <strata/models/impl/kernels.ipp>
#endif
