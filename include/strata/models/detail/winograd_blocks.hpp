#pragma once
// strata/models/detail/winograd_blocks.hpp - how models/winograd_convolution.hpp cuts a convolution.

#include <algorithm>
#include <cstdint>

#include <strata/models/winograd_tiles.hpp>

namespace strata::models::detail {

/// How a convolution is cut: tile rows (of all pictures) of which the tiles of all channels, and of all results, fit into 16 MiB, and
/// results whose windows fit into 8 MiB. One row and 16 results at least.
struct WinogradBlocks {
    kernels::WinogradGrid grid;
    std::int64_t all_rows, rows, results;

    WinogradBlocks(const kernels::WinogradGrid& of, std::int64_t pictures, std::int64_t C, std::int64_t O)
        : grid{of}, all_rows{pictures * of.tile_rows()} {
        constexpr std::int64_t numbers = std::int64_t{1} << 20;
        const std::int64_t tiles = 4 * numbers / (16 * std::max(C, O));
        rows = std::min(std::max<std::int64_t>(tiles / of.row_tiles(), 1), all_rows);
        results = std::min(std::max<std::int64_t>(2 * numbers / (16 * C) / 16 * 16, 16), O);
    }
    [[nodiscard]] std::int64_t tiles(std::int64_t of_rows) const { return of_rows * grid.row_tiles(); }
};

}  // namespace strata::models::detail
