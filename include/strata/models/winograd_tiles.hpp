#pragma once
// strata/models/winograd_tiles.hpp - the transforms of Winograd's 3 x 3 convolution, by tiles of 2 x 2 results.
//
// Lavin & Gray 2016 (Fast Algorithms for Convolutional Neural Networks, arXiv:1509.09308, section 4.1, F(2x2, 3x3)): 16 multiplications a
// tile, channel and result in place of 36. Y = A'[(G g G') * (B' d B)] A for a tile d (4, 4) and a window g (3, 3), and the
// same matrices give the gradients: dd = B [...] B', dg = G'[(A dY A') * (B' d B)] G.
//
// fp32, plain pointers, no libtorch, one thread; every body exists for AVX-512, AVX2 and the baseline with the same bits. A transformed
// thing is 16 matrices, one for each place (4, 4) of a tile, `plane` numbers apart.
// Shapes: B pictures of C channels, h and w; O results; tile rows of all pictures are numbered through.

#include <cstdint>

#include <strata/core/inline.hpp>

namespace strata::models::kernels {

/// A 3 x 3 convolution of step 1 over pictures (B, C, height, width), dense, with `padding` zeros on each side.
struct WinogradGrid {
    std::int64_t height = 0, width = 0;
    std::int64_t padding = 0;  ///< 0 to 2

    [[nodiscard]] constexpr std::int64_t out_height() const noexcept { return height + 2 * padding - 2; }
    [[nodiscard]] constexpr std::int64_t out_width() const noexcept { return width + 2 * padding - 2; }
    [[nodiscard]] constexpr std::int64_t tile_rows() const noexcept {
        return (out_height() + 1) / 2;
    }  ///< of a picture
    [[nodiscard]] constexpr std::int64_t row_tiles() const noexcept { return (out_width() + 1) / 2; }
};

/// Windows (3, 3) of a weight: the one of row r and column c begins at weight[r * row_stride + c * column_stride], and is read
/// backwards where `is_turned`, as a gradient for pictures wants it.
struct WinogradWindows {
    const float* weight = nullptr;
    std::int64_t row_stride = 0, column_stride = 0;
    bool is_turned = false;
};

/// to (16, rows, columns) = G g G' of windows [row, row + rows) and all columns.
void winograd_windows(float* to, std::int64_t plane, const WinogradWindows& from, std::int64_t row, std::int64_t rows,
                      std::int64_t columns);

/// to (16, channels, tiles) = B' d B of channels [channel, channel + channels) of C and of tile rows [row, row + rows).
void winograd_pictures(float* to, std::int64_t plane, const float* x, std::int64_t C, const WinogradGrid& grid,
                       std::int64_t channel, std::int64_t channels, std::int64_t row, std::int64_t rows);

/// Results [result, result + results) of O of y (B, O, out_height, out_width) = A' m A of m (16, results, tiles), plus bias
/// (O) or nullptr for nothing.
void winograd_results(float* y, std::int64_t O, const WinogradGrid& grid, const float* m, std::int64_t plane,
                      const float* bias, std::int64_t result, std::int64_t results, std::int64_t row,
                      std::int64_t rows);

/// to (16, results, tiles) = A dY A' of y's gradient.
void winograd_result_gradients(float* to, std::int64_t plane, const float* grad_y, std::int64_t O,
                               const WinogradGrid& grid, std::int64_t result, std::int64_t results, std::int64_t row,
                               std::int64_t rows);

/// grad_weight (rows, columns, 3, 3), dense, = G' u G of u (16, rows, columns).
void winograd_window_gradients(float* grad_weight, const float* u, std::int64_t plane, std::int64_t rows,
                               std::int64_t columns);

}  // namespace strata::models::kernels

#ifndef STRATA_COMPILED
#include <strata/models/impl/winograd_tiles.ipp>
#endif
