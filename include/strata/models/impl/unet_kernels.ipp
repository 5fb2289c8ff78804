#pragma once
// strata/models/impl/unet_kernels.ipp - the loops of each kernel for every instruction set, and the choice between them.

#include <cstdint>

#include <strata/core/simd.hpp>
#include <strata/models/detail/unet_loops.hpp>
#include <strata/models/unet_kernels.hpp>

namespace strata::models::kernels {

#define STRATA_KERNEL(name, ...)                                             \
    core::run_in_lanes(                                                      \
        core::simd_level(), [&](auto lanes) __attribute__((always_inline)) { \
            detail::name<core::Lanes<decltype(lanes)::value>>(__VA_ARGS__);  \
        })

STRATA_INLINE void group_norm(float* y, float* statistics, const float* x, const float* weight, const float* bias,
                              const GroupNormShape& shape) {
    STRATA_KERNEL(group_norm, y, statistics, x, weight, bias, shape);
}
STRATA_INLINE void group_norm(bf16* y, float* statistics, const bf16* x, const bf16* weight, const bf16* bias,
                              const GroupNormShape& shape) {
    STRATA_KERNEL(group_norm, y, statistics, x, weight, bias, shape);
}

STRATA_INLINE void group_norm_backward(float* grad_x, float* grad_weight, float* grad_bias, const float* grad_y,
                                       const float* x, const float* statistics, const float* weight, const float* bias,
                                       const GroupNormShape& shape) {
    STRATA_KERNEL(group_norm_backward, grad_x, grad_weight, grad_bias, grad_y, x, statistics, weight, bias, shape);
}
STRATA_INLINE void group_norm_backward(bf16* grad_x, float* grad_weight, float* grad_bias, const bf16* grad_y,
                                       const bf16* x, const float* statistics, const bf16* weight, const bf16* bias,
                                       const GroupNormShape& shape) {
    STRATA_KERNEL(group_norm_backward, grad_x, grad_weight, grad_bias, grad_y, x, statistics, weight, bias, shape);
}

STRATA_INLINE void layer_norm(float* y, float* statistics, const float* x, const float* weight, const float* bias,
                              std::int64_t M, std::int64_t D, float eps) {
    STRATA_KERNEL(layer_norm, y, statistics, x, weight, bias, M, D, eps);
}
STRATA_INLINE void layer_norm(bf16* y, float* statistics, const bf16* x, const bf16* weight, const bf16* bias,
                              std::int64_t M, std::int64_t D, float eps) {
    STRATA_KERNEL(layer_norm, y, statistics, x, weight, bias, M, D, eps);
}

STRATA_INLINE void layer_norm_backward(float* grad_x, float* grad_weight, float* grad_bias, const float* grad_y,
                                       const float* x, const float* statistics, const float* weight, std::int64_t M,
                                       std::int64_t D) {
    STRATA_KERNEL(layer_norm_backward, grad_x, grad_weight, grad_bias, grad_y, x, statistics, weight, M, D);
}
STRATA_INLINE void layer_norm_backward(bf16* grad_x, float* grad_weight, float* grad_bias, const bf16* grad_y,
                                       const bf16* x, const float* statistics, const bf16* weight, std::int64_t M,
                                       std::int64_t D) {
    STRATA_KERNEL(layer_norm_backward, grad_x, grad_weight, grad_bias, grad_y, x, statistics, weight, M, D);
}

STRATA_INLINE void geglu(float* y, const float* x, std::int64_t M, std::int64_t D) { STRATA_KERNEL(geglu, y, x, M, D); }
STRATA_INLINE void geglu(bf16* y, const bf16* x, std::int64_t M, std::int64_t D) { STRATA_KERNEL(geglu, y, x, M, D); }

STRATA_INLINE void geglu_backward(float* grad_x, const float* grad_y, const float* x, std::int64_t M, std::int64_t D) {
    STRATA_KERNEL(geglu_backward, grad_x, grad_y, x, M, D);
}
STRATA_INLINE void geglu_backward(bf16* grad_x, const bf16* grad_y, const bf16* x, std::int64_t M, std::int64_t D) {
    STRATA_KERNEL(geglu_backward, grad_x, grad_y, x, M, D);
}

#undef STRATA_KERNEL

}  // namespace strata::models::kernels
