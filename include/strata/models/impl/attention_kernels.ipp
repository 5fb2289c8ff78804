#pragma once
// strata/models/impl/attention_kernels.ipp - the loops of each kernel for every instruction set, and the choice between them.

#include <cstdint>

#include <strata/core/simd.hpp>
#include <strata/models/attention_kernels.hpp>
#include <strata/models/detail/attention_loops.hpp>

namespace strata::models::kernels {

#define STRATA_KERNEL(name, ...)                                             \
    core::run_in_lanes(                                                      \
        core::simd_level(), [&](auto lanes) __attribute__((always_inline)) { \
            detail::name<core::Lanes<decltype(lanes)::value>>(__VA_ARGS__);  \
        })

STRATA_INLINE void running_softmax(float* s, const ScoreTile& tile, float* peak, float* total, float* correction) {
    STRATA_KERNEL(running_softmax, s, tile, peak, total, correction);
}
STRATA_INLINE void running_softmax(bf16* s, const ScoreTile& tile, float* peak, float* total, float* correction) {
    STRATA_KERNEL(running_softmax, s, tile, peak, total, correction);
}

STRATA_INLINE void add_part(float* acc, const float* part, const float* correction, std::int64_t rows, std::int64_t K) {
    STRATA_KERNEL(add_part, acc, part, correction, rows, K);
}
STRATA_INLINE void add_part(float* acc, const bf16* part, const float* correction, std::int64_t rows, std::int64_t K) {
    STRATA_KERNEL(add_part, acc, part, correction, rows, K);
}

STRATA_INLINE void divide_rows(float* y, std::int64_t y_stride, float* logsum, const float* acc, const float* peak,
                               const float* total, std::int64_t rows, std::int64_t K) {
    STRATA_KERNEL(divide_rows, y, y_stride, logsum, acc, peak, total, rows, K);
}
STRATA_INLINE void divide_rows(bf16* y, std::int64_t y_stride, float* logsum, const float* acc, const float* peak,
                               const float* total, std::int64_t rows, std::int64_t K) {
    STRATA_KERNEL(divide_rows, y, y_stride, logsum, acc, peak, total, rows, K);
}

STRATA_INLINE void row_dots(float* dots, const float* a, const float* b, std::int64_t rows, std::int64_t K,
                            std::int64_t stride) {
    STRATA_KERNEL(row_dots, dots, a, b, rows, K, stride);
}
STRATA_INLINE void row_dots(float* dots, const bf16* a, const bf16* b, std::int64_t rows, std::int64_t K,
                            std::int64_t stride) {
    STRATA_KERNEL(row_dots, dots, a, b, rows, K, stride);
}

STRATA_INLINE void score_gradient(float* s, float* grad, const ScoreTile& tile, const float* logsum,
                                  const float* dots) {
    STRATA_KERNEL(score_gradient, s, grad, tile, logsum, dots);
}
STRATA_INLINE void score_gradient(bf16* s, bf16* grad, const ScoreTile& tile, const float* logsum, const float* dots) {
    STRATA_KERNEL(score_gradient, s, grad, tile, logsum, dots);
}

STRATA_INLINE void scaled_copy(float* y, const float* x, std::int64_t n, float scale) {
    STRATA_KERNEL(scaled_copy, y, x, n, scale);
}
STRATA_INLINE void scaled_copy(bf16* y, const float* x, std::int64_t n, float scale) {
    STRATA_KERNEL(scaled_copy, y, x, n, scale);
}

#undef STRATA_KERNEL

}  // namespace strata::models::kernels
