#pragma once
// strata/models/pair_products.hpp - products of bf16 matrices by the instruction that multiplies pairs (AVX512_BF16).
//
// vdpbf16ps adds two products of bf16 numbers to each of 16 fp32 sums: twice the rate of fp32. oneDNN, which libtorch calls, has it
// too; bench/bf16_products/RESULT.md says how near each comes to what the instruction can do. Blocks are packed and multiplied as
// Goto & van de Geijn 2008 (Anatomy of High-Performance Matrix Multiplication, section 4) do, and rounded where they are complete.
//
// Plain pointers, no libtorch, one thread. Shapes: M rows, N columns, K terms.

#include <cstdint>
#include <span>

#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>

namespace strata::models::kernels {

/// A matrix in place: its number (i, j) is numbers[i * row_stride + j * column_stride]. At least one stride is 1.
struct PairOperand {
    const bf16* numbers = nullptr;
    std::int64_t row_stride = 0, column_stride = 0;
};

/// A sum of products has one of these for each: a (M, K) times b (K, N).
struct PairTerm {
    PairOperand a, b;
    std::int64_t K = 0;
};

/// Where a sum goes: y (M, N), rows `stride` apart, plus of_columns (N), or nullptr for nothing.
struct PairResult {
    bf16* y = nullptr;
    std::int64_t stride = 0;
    const bf16* of_columns = nullptr;
};

/// A part of the result.
struct PairBlock {
    std::int64_t row = 0, rows = 0, column = 0, columns = 0;
};

/// Rows and columns of a block at most, for this sum: multiples of 16 and 48.
struct PairBlockSize {
    std::int64_t rows = 0, columns = 0;
};
[[nodiscard]] PairBlockSize pair_block_size(std::span<const PairTerm> sum) noexcept;

/// Whether this CPU has the instruction. Local.
[[nodiscard]] bool has_pair_products() noexcept;

/// That block of the result, of pair_block_size() at most; each number is rounded once. A sum goes by pairs of terms in their order,
/// so its bits depend on its row and column alone, not on the block. Subnormal numbers count as 0. Up to 7 MiB of scratch a
/// thread, kept for its next product. Only where has_pair_products().
void pair_product(const PairResult& to, std::span<const PairTerm> sum, const PairBlock& block);

}  // namespace strata::models::kernels

#ifndef STRATA_COMPILED
#include <strata/models/impl/pair_products.ipp>
#endif
