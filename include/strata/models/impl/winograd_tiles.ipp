#pragma once
// strata/models/impl/winograd_tiles.ipp - a line of tiles, or 16 windows, at a time; the compiler makes vectors of it.

#include <algorithm>
#include <cstdint>
#include <vector>

#include <strata/core/independent_loop.hpp>
#include <strata/core/simd.hpp>
#include <strata/models/winograd_tiles.hpp>

namespace strata::models::kernels {

namespace detail {

inline constexpr std::int64_t windows_at_once = 16;
using WindowLanes = float[windows_at_once];

/// G g G': 3 numbers become 4, (a, (a + b + c) / 2, (a - b + c) / 2, c), of columns and then of rows.
[[gnu::always_inline]] inline void transform_windows(WindowLanes (&to)[16], const WindowLanes (&g)[9]) {
    WindowLanes half[12];
    for (int column = 0; column < 3; ++column)
        for (std::int64_t i = 0; i < windows_at_once; ++i) {
            const float a = g[column][i], b = g[3 + column][i], c = g[6 + column][i];
            half[column][i] = a;
            half[3 + column][i] = 0.5f * (a + c + b);
            half[6 + column][i] = 0.5f * (a + c - b);
            half[9 + column][i] = c;
        }
    for (int row = 0; row < 4; ++row)
        for (std::int64_t i = 0; i < windows_at_once; ++i) {
            const float a = half[3 * row][i], b = half[3 * row + 1][i], c = half[3 * row + 2][i];
            to[4 * row][i] = a;
            to[4 * row + 1][i] = 0.5f * (a + c + b);
            to[4 * row + 2][i] = 0.5f * (a + c - b);
            to[4 * row + 3][i] = c;
        }
}

/// G' u G: 4 numbers become 3, (a + (b + c) / 2, (b - c) / 2, (b + c) / 2 + d).
[[gnu::always_inline]] inline void transform_window_gradients(WindowLanes (&g)[9], const WindowLanes (&u)[16]) {
    WindowLanes half[12];
    for (int column = 0; column < 4; ++column)
        for (std::int64_t i = 0; i < windows_at_once; ++i) {
            const float b = 0.5f * u[4 + column][i], c = 0.5f * u[8 + column][i];
            half[column][i] = u[column][i] + (b + c);
            half[4 + column][i] = b - c;
            half[8 + column][i] = (b + c) + u[12 + column][i];
        }
    for (int row = 0; row < 3; ++row)
        for (std::int64_t i = 0; i < windows_at_once; ++i) {
            const float b = 0.5f * half[4 * row + 1][i], c = 0.5f * half[4 * row + 2][i];
            g[3 * row][i] = half[4 * row][i] + (b + c);
            g[3 * row + 1][i] = b - c;
            g[3 * row + 2][i] = (b + c) + half[4 * row + 3][i];
        }
}

/// Lines that a row of tiles is worked out in: of pictures 4 of two numbers a tile and two more, of results 8 of a number a tile.
struct TileLines {
    explicit TileLines(const WinogradGrid& grid)
        : length{2 * grid.row_tiles() + 2}, numbers(static_cast<std::size_t>(10 * length)) {}
    std::int64_t length;
    std::vector<float> numbers;
    [[nodiscard]] float* line(std::int64_t i) { return numbers.data() + i * length; }
};

/// to (4 planes) = (e - e', o + e', e' - o, o - o') of a line's even and odd numbers; a prime is the next tile's.
[[gnu::always_inline]] inline void transform_line(float* to, std::int64_t plane, const float* line, float* even,
                                                  float* odd, std::int64_t tiles) {
    for (std::int64_t t = 0; t <= tiles; ++t) {
        even[t] = line[2 * t];
        odd[t] = line[2 * t + 1];
    }
    STRATA_INDEPENDENT_LOOP
    for (std::int64_t t = 0; t < tiles; ++t) {
        to[t] = even[t] - even[t + 1];
        to[plane + t] = odd[t] + even[t + 1];
        to[2 * plane + t] = even[t + 1] - odd[t];
        to[3 * plane + t] = odd[t] - odd[t + 1];
    }
}

}  // namespace detail

STRATA_INLINE void winograd_windows(float* to, std::int64_t plane, const WinogradWindows& from, std::int64_t row,
                                    std::int64_t rows, std::int64_t columns) {
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            alignas(64) detail::WindowLanes g[9], u[16];
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t c = 0; c < columns; c += detail::windows_at_once) {
                    const std::int64_t count = std::min(detail::windows_at_once, columns - c);
                    const float* first = from.weight + (row + r) * from.row_stride + c * from.column_stride;
                    for (std::int64_t i = 0; i < count; ++i)
                        for (int k = 0; k < 9; ++k)
                            g[k][i] = first[i * from.column_stride + (from.is_turned ? 8 - k : k)];
                    for (std::int64_t i = count; i < detail::windows_at_once; ++i)
                        for (auto& lane : g) lane[i] = 0;
                    detail::transform_windows(u, g);
                    for (int e = 0; e < 16; ++e) {
                        float* out = to + e * plane + r * columns + c;
                        for (std::int64_t i = 0; i < count; ++i) out[i] = u[e][i];
                    }
                }
        });
}

STRATA_INLINE void winograd_window_gradients(float* grad_weight, const float* u, std::int64_t plane, std::int64_t rows,
                                             std::int64_t columns) {
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            alignas(64) detail::WindowLanes g[9], lanes[16];
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t c = 0; c < columns; c += detail::windows_at_once) {
                    const std::int64_t count = std::min(detail::windows_at_once, columns - c);
                    for (int e = 0; e < 16; ++e)
                        for (std::int64_t i = 0; i < detail::windows_at_once; ++i)
                            lanes[e][i] = i < count ? u[e * plane + r * columns + c + i] : 0.0f;
                    detail::transform_window_gradients(g, lanes);
                    float* out = grad_weight + (r * columns + c) * 9;
                    for (std::int64_t i = 0; i < count; ++i)
                        for (int k = 0; k < 9; ++k) out[9 * i + k] = g[k][i];
                }
        });
}

STRATA_INLINE void winograd_pictures(float* to, std::int64_t plane, const float* x, std::int64_t C,
                                     const WinogradGrid& grid, std::int64_t channel, std::int64_t channels,
                                     std::int64_t row, std::int64_t rows) {
    detail::TileLines lines{grid};
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            const std::int64_t tiles = grid.row_tiles(), length = lines.length, count = rows * tiles;
            float *line = lines.line(4), *even = lines.line(5), *odd = lines.line(6);
            for (std::int64_t c = 0; c < channels; ++c)
                for (std::int64_t r = 0; r < rows; ++r) {
                    const std::int64_t picture = (row + r) / grid.tile_rows(), y = 2 * ((row + r) % grid.tile_rows());
                    const float* from = x + (picture * C + channel + c) * grid.height * grid.width;
                    for (std::int64_t i = 0; i < 4; ++i) {  // a line of the picture with its padding
                        float* padded = lines.line(i);
                        std::fill_n(padded, length, 0.0f);
                        const std::int64_t at = y + i - grid.padding;
                        if (at >= 0 && at < grid.height)
                            std::copy_n(from + at * grid.width, std::min(grid.width, length - grid.padding),
                                        padded + grid.padding);
                    }
                    const float *a = lines.line(0), *b = lines.line(1), *d = lines.line(2), *e = lines.line(3);
                    float* out = to + c * count + r * tiles;
                    const auto combined = [&](int i, const float* p, const float* q, float sign)
                        __attribute__((always_inline)) {
                        STRATA_INDEPENDENT_LOOP
                        for (std::int64_t k = 0; k < length; ++k) line[k] = p[k] + sign * q[k];
                        detail::transform_line(out + 4 * i * plane, plane, line, even, odd, tiles);
                    };
                    combined(0, a, d, -1.0f);
                    combined(1, b, d, 1.0f);
                    combined(2, d, b, -1.0f);
                    combined(3, b, e, -1.0f);
                }
        });
}

STRATA_INLINE void winograd_results(float* y, std::int64_t O, const WinogradGrid& grid, const float* m,
                                    std::int64_t plane, const float* bias, std::int64_t result, std::int64_t results,
                                    std::int64_t row, std::int64_t rows) {
    detail::TileLines lines{grid};
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            const std::int64_t tiles = grid.row_tiles(), count = rows * tiles;
            const std::int64_t height = grid.out_height(), width = grid.out_width();
            for (std::int64_t o = 0; o < results; ++o) {
                const float plus = bias != nullptr ? bias[result + o] : 0.0f;
                for (std::int64_t r = 0; r < rows; ++r) {
                    const std::int64_t picture = (row + r) / grid.tile_rows(), at = 2 * ((row + r) % grid.tile_rows());
                    const float* in = m + o * count + r * tiles;
                    float* out = y + ((picture * O + result + o) * height + at) * width;
                    for (int half = 0; half < 2 && at + half < height; ++half, out += width) {
                        // A' by rows: m0 + m1 + m2, and m1 - m2 - m3.
                        const float* p = in + (half == 0 ? 0 : 4) * plane;
                        const float* q = in + (half == 0 ? 4 : 8) * plane;
                        const float* s = in + (half == 0 ? 8 : 12) * plane;
                        const float sign = half == 0 ? 1.0f : -1.0f;
                        float *first = lines.line(0), *second = lines.line(1);
                        STRATA_INDEPENDENT_LOOP
                        for (std::int64_t t = 0; t < tiles; ++t) {
                            const float k0 = p[t] + sign * (q[t] + s[t]);
                            const float k1 = p[plane + t] + sign * (q[plane + t] + s[plane + t]);
                            const float k2 = p[2 * plane + t] + sign * (q[2 * plane + t] + s[2 * plane + t]);
                            const float k3 = p[3 * plane + t] + sign * (q[3 * plane + t] + s[3 * plane + t]);
                            first[t] = k0 + k1 + k2 + plus;
                            second[t] = k1 - k2 - k3 + plus;
                        }
                        for (std::int64_t t = 0; t < width / 2; ++t) {
                            out[2 * t] = first[t];
                            out[2 * t + 1] = second[t];
                        }
                        if (width % 2 != 0) out[width - 1] = first[tiles - 1];
                    }
                }
            }
        });
}

STRATA_INLINE void winograd_result_gradients(float* to, std::int64_t plane, const float* grad_y, std::int64_t O,
                                             const WinogradGrid& grid, std::int64_t result, std::int64_t results,
                                             std::int64_t row, std::int64_t rows) {
    detail::TileLines lines{grid};
    core::run_at(
        core::simd_level(), [&]() __attribute__((always_inline)) {
            const std::int64_t tiles = grid.row_tiles(), count = rows * tiles;
            const std::int64_t height = grid.out_height(), width = grid.out_width();
            for (std::int64_t o = 0; o < results; ++o)
                for (std::int64_t r = 0; r < rows; ++r) {
                    const std::int64_t picture = (row + r) / grid.tile_rows(), at = 2 * ((row + r) % grid.tile_rows());
                    const float* from = grad_y + ((picture * O + result + o) * height + at) * width;
                    for (int half = 0; half < 2; ++half) {
                        float *first = lines.line(2 * half), *second = lines.line(2 * half + 1);
                        if (at + half >= height) {
                            std::fill_n(first, tiles, 0.0f);
                            std::fill_n(second, tiles, 0.0f);
                            continue;
                        }
                        const float* line = from + half * width;
                        for (std::int64_t t = 0; t < width / 2; ++t) {
                            first[t] = line[2 * t];
                            second[t] = line[2 * t + 1];
                        }
                        if (width % 2 != 0) {
                            first[tiles - 1] = line[width - 1];
                            second[tiles - 1] = 0.0f;
                        }
                    }
                    float* out = to + o * count + r * tiles;
                    // A by rows, (g0, g0 + g1, g0 - g1, -g1), and then by columns.
                    const auto of_row = [&](int i, float p, float q) __attribute__((always_inline)) {
                        const float *a = lines.line(0), *b = lines.line(1), *c = lines.line(2), *d = lines.line(3);
                        float* k = out + 4 * i * plane;
                        STRATA_INDEPENDENT_LOOP
                        for (std::int64_t t = 0; t < tiles; ++t) {
                            const float left = p * a[t] + q * c[t], right = p * b[t] + q * d[t];
                            k[t] = left;
                            k[plane + t] = left + right;
                            k[2 * plane + t] = left - right;
                            k[3 * plane + t] = -right;
                        }
                    };
                    of_row(0, 1.0f, 0.0f);
                    of_row(1, 1.0f, 1.0f);
                    of_row(2, 1.0f, -1.0f);
                    of_row(3, 0.0f, -1.0f);
                }
        });
}

}  // namespace strata::models::kernels
