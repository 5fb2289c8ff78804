#pragma once
// strata/models/impl/few_rows.ipp - the loops of each kernel for every instruction set, and the choice between them.

#include <cstdint>

#include <strata/core/simd.hpp>
#include <strata/models/detail/few_rows_loops.hpp>
#include <strata/models/few_rows.hpp>

namespace strata::models::kernels {

#define STRATA_KERNEL(name, ...)                                             \
    core::run_in_lanes(                                                      \
        core::simd_level(), [&](auto lanes) __attribute__((always_inline)) { \
            detail::name<core::Lanes<decltype(lanes)::value>>(__VA_ARGS__);  \
        })

STRATA_INLINE void few_rows(float* y, const float* x, const float* weight, const float* bias, std::int64_t R,
                            std::int64_t I, std::int64_t O) {
    STRATA_KERNEL(few_rows, y, x, weight, bias, R, I, O);
}
STRATA_INLINE void few_rows(bf16* y, const bf16* x, const bf16* weight, const bf16* bias, std::int64_t R,
                            std::int64_t I, std::int64_t O) {
    STRATA_KERNEL(few_rows, y, x, weight, bias, R, I, O);
}

STRATA_INLINE void few_rows_grad_x(float* grad_x, const float* grad_y, const float* weight, std::int64_t R,
                                   std::int64_t I, std::int64_t O) {
    STRATA_KERNEL(few_rows_grad_x, grad_x, grad_y, weight, R, I, O);
}
STRATA_INLINE void few_rows_grad_x(float* grad_x, const bf16* grad_y, const bf16* weight, std::int64_t R,
                                   std::int64_t I, std::int64_t O) {
    STRATA_KERNEL(few_rows_grad_x, grad_x, grad_y, weight, R, I, O);
}

STRATA_INLINE void few_rows_grad_weight(float* grad_weight, const float* grad_y, const float* x, std::int64_t R,
                                        std::int64_t I, std::int64_t O) {
    STRATA_KERNEL(few_rows_grad_weight, grad_weight, grad_y, x, R, I, O);
}
STRATA_INLINE void few_rows_grad_weight(bf16* grad_weight, const bf16* grad_y, const bf16* x, std::int64_t R,
                                        std::int64_t I, std::int64_t O) {
    STRATA_KERNEL(few_rows_grad_weight, grad_weight, grad_y, x, R, I, O);
}

#undef STRATA_KERNEL

}  // namespace strata::models::kernels
