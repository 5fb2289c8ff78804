#pragma once
// strata/models/wide_blocks.hpp - blocks of bf16 matrices as fp32 and back, and those of a convolution's windows.
//
// Plain pointers, no libtorch, one thread. Every body exists for AVX-512, AVX2 and the baseline with the same bits: widening is
// exact, and rounding is that of core/bf16.hpp.

#include <cstdint>

#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>
#include <strata/models/detail/patch_grid.hpp>

namespace strata::models::kernels {

/// to (rows, n), dense, = from, whose rows are `stride` apart.
void widen(float* to, const bf16* from, std::int64_t rows, std::int64_t n, std::int64_t stride);

/// to, whose rows are `stride` apart, = from (rows, n), dense, plus what is added to each row (rows) and to each column (n);
/// nullptr for nothing. Rounded once.
void round_block(bf16* to, std::int64_t stride, const float* from, std::int64_t rows, std::int64_t n,
                 const bf16* of_rows, const bf16* of_columns);

/// to (rows, columns), dense, = that block of the windows of a picture of grid's size; 0 beyond its edges.
void widen_patches(float* to, const bf16* picture, const PatchGrid& grid, std::int64_t row, std::int64_t rows,
                   std::int64_t column, std::int64_t columns);

/// The other way: adds each number of a block from (rows, columns) to the one of the picture that the window read there.
void add_patches(float* picture, const float* from, const PatchGrid& grid, std::int64_t row, std::int64_t rows,
                 std::int64_t column, std::int64_t columns);

}  // namespace strata::models::kernels

#ifndef STRATA_COMPILED
#include <strata/models/impl/wide_blocks.ipp>
#endif
