#pragma once
// strata/models/detail/pair_walk.hpp - a whole sum of products by models/pair_products.hpp, its blocks shared by libtorch's threads.

#include <algorithm>
#include <cstdint>
#include <span>

#include <ATen/Parallel.h>

#include <strata/models/pair_products.hpp>

namespace strata::models::detail {

/// The size of n numbers' parts, multiples of `step`, of which none has more than `most`.
constexpr std::int64_t even_part(std::int64_t n, std::int64_t most, std::int64_t step) noexcept {
    const std::int64_t parts = (n + most - 1) / most;
    return ((n + parts - 1) / parts + step - 1) / step * step;
}

/// All of the sum, (M, N). Blocks get smaller where there are threads without one; the bits stay.
inline void for_pair_blocks(const kernels::PairResult& to, std::int64_t M, std::int64_t N,
                            std::span<const kernels::PairTerm> sum) {
    if (M == 0 || N == 0) return;
    constexpr std::int64_t least_rows = 64;
    const kernels::PairBlockSize most = kernels::pair_block_size(sum);
    const std::int64_t columns = even_part(N, most.columns, 48), across = (N + columns - 1) / columns;
    std::int64_t rows = even_part(M, most.rows, 16);
    const std::int64_t threads = at::get_num_threads(), wanted = threads > 1 ? 2 * threads : 1;
    while (rows > least_rows && (M + rows - 1) / rows * across < wanted) rows = even_part(rows, rows / 2, 16);
    const std::int64_t down = (M + rows - 1) / rows;
    at::parallel_for(0, down * across, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t row = i / across * rows, column = i % across * columns;
            kernels::pair_product(to, sum,
                                  {.row = row,
                                   .rows = std::min(rows, M - row),
                                   .column = column,
                                   .columns = std::min(columns, N - column)});
        }
    });
}

}  // namespace strata::models::detail
