#pragma once
// strata/models/impl/pair_products.ipp - the walk over the terms of a block.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include <strata/core/simd.hpp>
#include <strata/models/detail/pair_loops.hpp>
#include <strata/models/pair_products.hpp>

namespace strata::models::kernels {

namespace detail {

inline constexpr std::int64_t most_rows = 1024, most_columns = 960;  ///< of a block
inline constexpr std::int64_t packed_of_a = 1024 * 1024;             ///< numbers
inline constexpr std::int64_t packed_of_b = 960 * 512;

/// Terms that are packed at once: all of them up to 1,024, so that sums stay in registers from the first to the last. Even.
inline std::int64_t pair_depth(std::span<const PairTerm> sum) noexcept {
    if (sum.size() != 1 || sum.front().K > 1024) return 512;
    return std::max((sum.front().K + 1) / 2 * 2, std::int64_t{2});
}

}  // namespace detail

STRATA_INLINE PairBlockSize pair_block_size(std::span<const PairTerm> sum) noexcept {
    const std::int64_t depth = detail::pair_depth(sum);
    return {.rows = std::min(detail::packed_of_a / depth / 16 * 16, detail::most_rows),
            .columns = std::min(detail::packed_of_b / depth / 48 * 48, detail::most_columns)};
}

STRATA_INLINE bool has_pair_products() noexcept { return core::cpu_features().avx512_bf16; }

#ifdef __x86_64__

namespace detail {

struct PairScratch {
    alignas(64) Pair a[packed_of_a / 2 + 4 * most_rows];
    alignas(64) Pair b[packed_of_b / 2 + most_columns];
    alignas(64) float sums[most_rows * most_columns];  ///< no page of it is there before a sum needs it
};
inline PairScratch& pair_scratch() {
    thread_local const std::unique_ptr<PairScratch> scratch{new PairScratch};
    return *scratch;
}

/// Pairs from the beginning of a strip to the next one's, as RowStrips and ColumnStrips want them: no multiple of 4, or odd.
inline std::int64_t a_pairs(std::int64_t pairs) noexcept { return pairs % 4 == 2 ? pairs : (pairs + 3) / 4 * 4 + 2; }
inline std::int64_t b_pairs(std::int64_t pairs) noexcept { return pairs | 1; }

/// A block of which `pairs` of terms are packed.
inline void multiply_block(const TileEnds& ends, const PairScratch& packed, std::int64_t rows, std::int64_t columns,
                           std::int64_t pairs) {
    for (std::int64_t column = 0; column < columns; column += tile_columns) {
        const std::int64_t width = std::min(tile_columns, columns - column);
        const auto multiply = width > 2 * lanes ? multiply_tile<3>
                              : width > lanes   ? multiply_tile<2>
                                                : multiply_tile<1>;
        TileEnds tile = ends;
        for (std::int64_t row = 0; row < rows; row += tile_rows) {
            tile.sums = ends.sums + row * ends.sums_stride + column;
            if (ends.y != nullptr) tile.y = ends.y + row * ends.y_stride + column;
            if (ends.of_columns != nullptr) tile.of_columns = ends.of_columns + column;
            multiply(tile, packed.a + row * a_pairs(pairs), packed.b + column * b_pairs(pairs), pairs,
                     std::min(tile_rows, rows - row), width);
        }
    }
}

}  // namespace detail

STRATA_INLINE void pair_product(const PairResult& to, std::span<const PairTerm> sum, const PairBlock& block) {
    detail::PairScratch& packed = detail::pair_scratch();
    const std::int64_t depth = detail::pair_depth(sum);
    detail::TileEnds ends{.sums = packed.sums, .sums_stride = block.columns, .begins = true};
    for (std::size_t i = 0; i < sum.size(); ++i) {
        const auto& [a, b, K] = sum[i];
        std::int64_t k = 0;
        do {  // once at least, so that a sum of no terms is written too
            const std::int64_t terms = std::min(depth, K - k), pairs = (terms + 1) / 2;
            detail::pack(
                detail::RowStrips{packed.a, detail::a_pairs(pairs)},
                {a.numbers + block.row * a.row_stride + k * a.column_stride, a.row_stride, a.column_stride, block.rows},
                terms);
            detail::pack(detail::ColumnStrips{packed.b, detail::b_pairs(pairs), block.columns},
                         {b.numbers + block.column * b.column_stride + k * b.row_stride, b.column_stride, b.row_stride,
                          block.columns},
                         terms);
            if (k + terms == K && i + 1 == sum.size()) {
                ends.y = to.y + block.row * to.stride + block.column;
                ends.y_stride = to.stride;
                ends.of_columns = to.of_columns == nullptr ? nullptr : to.of_columns + block.column;
            }
            detail::multiply_block(ends, packed, block.rows, block.columns, pairs);
            ends.begins = false;
            k += terms;
        } while (k < K);
    }
}

#else

STRATA_INLINE void pair_product(const PairResult&, std::span<const PairTerm>, const PairBlock&) {}

#endif

}  // namespace strata::models::kernels
