#pragma once
// strata/models/impl/wide_blocks.ipp - loops over blocks, which the compiler makes vectors of for each instruction set.

#include <cstdint>
#include <cstring>

#include <strata/core/elements.hpp>
#include <strata/core/independent_loop.hpp>
#include <strata/core/simd.hpp>
#include <strata/models/wide_blocks.hpp>

namespace strata::models::kernels {

namespace detail {

[[gnu::always_inline]] inline void widen_line(float* to, const bf16* from, std::int64_t n) {
    STRATA_INDEPENDENT_LOOP
    for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
}

}  // namespace detail

STRATA_INLINE void widen(float* to, const bf16* from, std::int64_t rows, std::int64_t n, std::int64_t stride) {
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            for (std::int64_t r = 0; r < rows; ++r) detail::widen_line(to + r * n, from + r * stride, n);
        });
}

STRATA_INLINE void round_block(bf16* to, std::int64_t stride, const float* from, std::int64_t rows, std::int64_t n,
                               const bf16* of_rows, const bf16* of_columns) {
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            for (std::int64_t r = 0; r < rows; ++r, to += stride, from += n) {
                const float of_row = of_rows != nullptr ? to_float(of_rows[r]) : 0.0f;
                if (of_columns != nullptr) {
                    STRATA_INDEPENDENT_LOOP
                    for (std::int64_t i = 0; i < n; ++i)
                        to[i] = to_element<bf16>(from[i] + of_row + to_float(of_columns[i]));
                } else {
                    STRATA_INDEPENDENT_LOOP
                    for (std::int64_t i = 0; i < n; ++i) to[i] = to_element<bf16>(from[i] + of_row);
                }
            }
        });
}

STRATA_INLINE void widen_patches(float* to, const bf16* picture, const PatchGrid& grid, std::int64_t row,
                                 std::int64_t rows, std::int64_t column, std::int64_t columns) {
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            std::memset(to, 0, static_cast<std::size_t>(rows * columns) * sizeof(float));
            for (std::int64_t r = 0; r < rows; ++r)
                detail::for_stretches(
                    grid, row + r, column, column + columns,
                    [&](std::int64_t at, std::int64_t source, std::int64_t count, std::int64_t step)
                        __attribute__((always_inline)) {
                            float* line = to + r * columns + (at - column);
                            const bf16* from = picture + source;
                            if (step == 1) return detail::widen_line(line, from, count);
                            for (std::int64_t i = 0; i < count; ++i) line[i] = to_float(from[i * step]);
                        });
        });
}

STRATA_INLINE void add_patches(float* picture, const float* from, const PatchGrid& grid, std::int64_t row,
                               std::int64_t rows, std::int64_t column, std::int64_t columns) {
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            for (std::int64_t r = 0; r < rows; ++r)
                detail::for_stretches(
                    grid, row + r, column, column + columns,
                    [&](std::int64_t at, std::int64_t target, std::int64_t count, std::int64_t step)
                        __attribute__((always_inline)) {
                            const float* line = from + r * columns + (at - column);
                            float* to = picture + target;
                            if (step == 1) {
                                STRATA_INDEPENDENT_LOOP
                                for (std::int64_t i = 0; i < count; ++i) to[i] += line[i];
                                return;
                            }
                            for (std::int64_t i = 0; i < count; ++i) to[i * step] += line[i];
                        });
        });
}

}  // namespace strata::models::kernels
