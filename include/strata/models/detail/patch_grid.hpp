#pragma once
// strata/models/detail/patch_grid.hpp - PatchGrid: which number of a picture a convolution's window reads at each place.

#include <algorithm>
#include <cstdint>

namespace strata::models::kernels {

/// A convolution's windows over one picture (channels, height, width). As a matrix they are (channels * kernel_height *
/// kernel_width, out_height * out_width): a row is one place of the window, a column one place of the result.
struct PatchGrid {
    std::int64_t channels = 0, height = 0, width = 0;
    std::int64_t kernel_height = 1, kernel_width = 1;
    std::int64_t stride_y = 1, stride_x = 1;
    std::int64_t padding_y = 0, padding_x = 0;
    std::int64_t dilation_y = 1, dilation_x = 1;

    [[nodiscard]] constexpr std::int64_t out_height() const noexcept {
        return (height + 2 * padding_y - dilation_y * (kernel_height - 1) - 1) / stride_y + 1;
    }
    [[nodiscard]] constexpr std::int64_t out_width() const noexcept {
        return (width + 2 * padding_x - dilation_x * (kernel_width - 1) - 1) / stride_x + 1;
    }
    [[nodiscard]] constexpr std::int64_t window() const noexcept { return kernel_height * kernel_width; }
    [[nodiscard]] constexpr std::int64_t rows() const noexcept { return channels * window(); }
    [[nodiscard]] constexpr std::int64_t columns() const noexcept { return out_height() * out_width(); }
    /// Whether the matrix is the picture itself.
    [[nodiscard]] constexpr bool is_picture() const noexcept {
        return window() == 1 && stride_y == 1 && stride_x == 1 && padding_y == 0 && padding_x == 0;
    }
};
static_assert(
    PatchGrid{
        .channels = 2, .height = 5, .width = 4, .kernel_height = 3, .kernel_width = 3, .stride_y = 2, .padding_y = 1}
        .columns() == 3 * 2);

namespace detail {

/// Calls run(column, from, count, step) for each stretch of columns [begin, end) of one row of the matrix that lies in one
/// line of the result and whose windows are inside the picture: its numbers from `from` on, `step` apart, belong to
/// `count` columns from `column` on.
template <class Run>
[[gnu::always_inline]] inline void for_stretches(const PatchGrid& grid, std::int64_t row, std::int64_t begin,
                                                 std::int64_t end, const Run& run) {
    const std::int64_t out_width = grid.out_width();
    const std::int64_t c = row / grid.window(), place = row % grid.window();
    const std::int64_t ky = place / grid.kernel_width * grid.dilation_y - grid.padding_y;
    const std::int64_t kx = place % grid.kernel_width * grid.dilation_x - grid.padding_x;
    // Places of the result whose window is inside: 0 <= x * stride + kx < width.
    const std::int64_t first = kx >= 0 ? 0 : (-kx + grid.stride_x - 1) / grid.stride_x;
    const std::int64_t last = grid.width <= kx ? 0 : (grid.width - kx - 1) / grid.stride_x + 1;
    for (std::int64_t y = begin / out_width; y * out_width < end; ++y) {
        const std::int64_t in_y = y * grid.stride_y + ky;
        if (in_y < 0 || in_y >= grid.height) continue;
        const std::int64_t line = y * out_width;
        const std::int64_t from = std::max({begin - line, first, std::int64_t{0}});
        const std::int64_t to = std::min({end - line, last, out_width});
        if (from < to)
            run(line + from, (c * grid.height + in_y) * grid.width + from * grid.stride_x + kx, to - from,
                grid.stride_x);
    }
}

}  // namespace detail

}  // namespace strata::models::kernels
