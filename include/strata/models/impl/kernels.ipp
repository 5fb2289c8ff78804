#pragma once
// strata/models/impl/kernels.ipp - the loops of each kernel for every instruction set, and the choice between them.

#include <cstdint>

#include <strata/core/simd.hpp>
#include <strata/models/detail/lane_loops.hpp>
#include <strata/models/kernels.hpp>

namespace strata::models::kernels {

#define STRATA_KERNEL(name, ...)                                             \
    core::run_in_lanes(                                                      \
        core::simd_level(), [&](auto lanes) __attribute__((always_inline)) { \
            detail::name<core::Lanes<decltype(lanes)::value>>(__VA_ARGS__);  \
        })

STRATA_INLINE void modulated_norm(float* y, float* statistics, const float* x, Rows<float> scale, Rows<float> shift,
                                  std::int64_t B, std::int64_t L, std::int64_t D, float eps) {
    STRATA_KERNEL(modulated_norm, y, statistics, x, scale, shift, B, L, D, eps);
}
STRATA_INLINE void modulated_norm(bf16* y, float* statistics, const bf16* x, Rows<bf16> scale, Rows<bf16> shift,
                                  std::int64_t B, std::int64_t L, std::int64_t D, float eps) {
    STRATA_KERNEL(modulated_norm, y, statistics, x, scale, shift, B, L, D, eps);
}

STRATA_INLINE void modulated_norm_backward(float* grad_x, float* grad_scale, float* grad_shift, const float* grad_y,
                                           const float* x, const float* statistics, Rows<float> scale, std::int64_t B,
                                           std::int64_t L, std::int64_t D) {
    STRATA_KERNEL(modulated_norm_backward, grad_x, grad_scale, grad_shift, grad_y, x, statistics, scale, B, L, D);
}
STRATA_INLINE void modulated_norm_backward(bf16* grad_x, float* grad_scale, float* grad_shift, const bf16* grad_y,
                                           const bf16* x, const float* statistics, Rows<bf16> scale, std::int64_t B,
                                           std::int64_t L, std::int64_t D) {
    STRATA_KERNEL(modulated_norm_backward, grad_x, grad_scale, grad_shift, grad_y, x, statistics, scale, B, L, D);
}

STRATA_INLINE void gated_add(float* y, const float* x, Rows<float> gate, const float* h, std::int64_t B, std::int64_t L,
                             std::int64_t D) {
    STRATA_KERNEL(gated_add, y, x, gate, h, B, L, D);
}
STRATA_INLINE void gated_add(bf16* y, const bf16* x, Rows<bf16> gate, const bf16* h, std::int64_t B, std::int64_t L,
                             std::int64_t D) {
    STRATA_KERNEL(gated_add, y, x, gate, h, B, L, D);
}

STRATA_INLINE void gated_add_backward(float* grad_h, float* grad_gate, const float* grad_y, Rows<float> gate,
                                      const float* h, std::int64_t B, std::int64_t L, std::int64_t D) {
    STRATA_KERNEL(gated_add_backward, grad_h, grad_gate, grad_y, gate, h, B, L, D);
}
STRATA_INLINE void gated_add_backward(bf16* grad_h, float* grad_gate, const bf16* grad_y, Rows<bf16> gate,
                                      const bf16* h, std::int64_t B, std::int64_t L, std::int64_t D) {
    STRATA_KERNEL(gated_add_backward, grad_h, grad_gate, grad_y, gate, h, B, L, D);
}

STRATA_INLINE void rms_norm_rotate(float* y, const float* x, const float* weight, const float* cosine,
                                   const float* sine, std::int64_t B, std::int64_t L, std::int64_t H, std::int64_t K,
                                   float eps) {
    STRATA_KERNEL(rms_norm_rotate, y, x, weight, cosine, sine, B, L, H, K, eps);
}
STRATA_INLINE void rms_norm_rotate(bf16* y, const bf16* x, const bf16* weight, const float* cosine, const float* sine,
                                   std::int64_t B, std::int64_t L, std::int64_t H, std::int64_t K, float eps) {
    STRATA_KERNEL(rms_norm_rotate, y, x, weight, cosine, sine, B, L, H, K, eps);
}

STRATA_INLINE void rms_norm_rotate_backward(float* grad_x, float* grad_weight, const float* grad_y, const float* x,
                                            const float* weight, const float* cosine, const float* sine, std::int64_t B,
                                            std::int64_t L, std::int64_t H, std::int64_t K, float eps) {
    STRATA_KERNEL(rms_norm_rotate_backward, grad_x, grad_weight, grad_y, x, weight, cosine, sine, B, L, H, K, eps);
}
STRATA_INLINE void rms_norm_rotate_backward(bf16* grad_x, float* grad_weight, const bf16* grad_y, const bf16* x,
                                            const bf16* weight, const float* cosine, const float* sine, std::int64_t B,
                                            std::int64_t L, std::int64_t H, std::int64_t K, float eps) {
    STRATA_KERNEL(rms_norm_rotate_backward, grad_x, grad_weight, grad_y, x, weight, cosine, sine, B, L, H, K, eps);
}

STRATA_INLINE void softmax(float* s, std::int64_t rows, std::int64_t n, float scale) {
    STRATA_KERNEL(softmax, s, rows, n, scale);
}
STRATA_INLINE void softmax(bf16* s, std::int64_t rows, std::int64_t n, float scale) {
    STRATA_KERNEL(softmax, s, rows, n, scale);
}

STRATA_INLINE void softmax_backward(float* grad, const float* p, std::int64_t rows, std::int64_t n, float scale) {
    STRATA_KERNEL(softmax_backward, grad, p, rows, n, scale);
}
STRATA_INLINE void softmax_backward(bf16* grad, const bf16* p, std::int64_t rows, std::int64_t n, float scale) {
    STRATA_KERNEL(softmax_backward, grad, p, rows, n, scale);
}

STRATA_INLINE void gelu(float* y, const float* x, std::int64_t n) { STRATA_KERNEL(gelu, y, x, n); }
STRATA_INLINE void gelu(bf16* y, const bf16* x, std::int64_t n) { STRATA_KERNEL(gelu, y, x, n); }

STRATA_INLINE void gelu_backward(float* grad_x, const float* grad_y, const float* x, std::int64_t n) {
    STRATA_KERNEL(gelu_backward, grad_x, grad_y, x, n);
}
STRATA_INLINE void gelu_backward(bf16* grad_x, const bf16* grad_y, const bf16* x, std::int64_t n) {
    STRATA_KERNEL(gelu_backward, grad_x, grad_y, x, n);
}

#undef STRATA_KERNEL

}  // namespace strata::models::kernels
