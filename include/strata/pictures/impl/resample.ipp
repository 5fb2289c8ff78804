#pragma once
// strata/pictures/impl/resample.ipp - separable Lanczos resampling.
//
// Columns first, 16 rows of the result at a time; these lie side by side afterwards, so that the second pass is 16
// equal sums as well and both passes add up in the order of the taps, whatever the width of a vector is.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numbers>

#include <strata/core/error.hpp>
#include <strata/core/lanes.hpp>
#include <strata/core/simd.hpp>
#include <strata/pictures/resample.hpp>

namespace strata::pictures {

namespace detail {

/// sinc(x) sinc(x/3) for |x| < 3 (Duchon 1979), 1 at 0.
inline double lanczos3(double x) noexcept {
    x = std::abs(x);
    if (x < 1e-9) return 1;
    if (x >= 3) return 0;
    const double angle = std::numbers::pi * x;
    return 3 * std::sin(angle) * std::sin(angle / 3) / (angle * angle);
}

/// The source samples that make one result sample, and their weights, which sum to 1.
struct Taps {
    std::int64_t first;
    std::int64_t count;
    const float* weights;
};

/// Taps of all result samples of an axis.
struct Axis {
    std::vector<float> weights;
    std::vector<Taps> taps;
    std::int64_t first = 0;  ///< source sample that is used
    std::int64_t end = 0;    ///< behind the last one
};

///   source   samples there are
///   result   samples wanted
///   step     source samples from one result sample to the next
///   begin    where the first result sample begins, in source samples
inline Axis axis_of(std::int64_t source, std::int64_t result, double step, double begin) {
    Axis axis;
    const double stretch = std::max(1.0, step);  // when shrinking the filter covers what a result sample stands for
    std::vector<double> weights;
    for (std::int64_t i = 0; i < result; ++i) {
        const double center = begin + (static_cast<double>(i) + 0.5) * step;
        const auto low = static_cast<std::int64_t>(std::floor(center - 3 * stretch + 0.5));
        const auto high = static_cast<std::int64_t>(std::floor(center + 3 * stretch + 0.5));  // exclusive
        const std::int64_t first = std::clamp<std::int64_t>(low, 0, source - 1);
        const std::int64_t end = std::clamp<std::int64_t>(high, first + 1, source);
        weights.clear();
        double sum = 0;
        for (std::int64_t j = first; j < end; ++j) {
            weights.push_back(lanczos3((static_cast<double>(j) + 0.5 - center) / stretch));
            sum += weights.back();
        }
        axis.taps.push_back({first, end - first, nullptr});
        for (const double weight : weights) axis.weights.push_back(static_cast<float>(weight / sum));
    }
    const float* next = axis.weights.data();
    for (Taps& taps : axis.taps) {
        taps.weights = next;
        next += taps.count;
    }
    axis.first = axis.taps.front().first;
    axis.end = axis.taps.back().first + axis.taps.back().count;
    return axis;
}

inline constexpr std::int64_t lanes = 16;          // rows of the result that are made together
inline constexpr std::int64_t strip_pixels = 128;  // columns of the picture that stay in the nearest cache
inline constexpr std::int64_t strip_samples = strip_pixels * 3;

/// Not by value: without its instruction set a wide vector is returned in another way.
template <class Floats>
[[gnu::always_inline]] inline void load(Floats& floats, const float* from) noexcept {
    std::memcpy(&floats, from, sizeof floats);
}
/// sums += weight * from[0 .. Count * width of a vector)
template <std::int64_t Count, class Floats>
[[gnu::always_inline]] inline void add_weighted(Floats (&sums)[Count], float weight, const float* from) noexcept {
    for (std::int64_t k = 0; k < Count; ++k) {
        Floats floats;
        load(floats, from + k * static_cast<std::int64_t>(sizeof(Floats) / sizeof(float)));
        sums[k] += weight * floats;
    }
}

/// 16 rows of 16 floats to 16 columns, for rows that are `from_stride` and `to_stride` floats apart.
[[gnu::always_inline]] inline void transpose16(const float* from, std::int64_t from_stride, float* to,
                                               std::int64_t to_stride) noexcept {
    using Four = core::VectorOf<float, 4>::type;
    for (std::int64_t y = 0; y < lanes; y += 4)
        for (std::int64_t x = 0; x < lanes; x += 4) {
            Four a, b, c, d;
            load(a, from + y * from_stride + x);
            load(b, from + (y + 1) * from_stride + x);
            load(c, from + (y + 2) * from_stride + x);
            load(d, from + (y + 3) * from_stride + x);
            const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
            const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
            const Four columns[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                                     __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                                     __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                                     __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
            for (std::int64_t i = 0; i < 4; ++i) std::memcpy(to + (x + i) * to_stride + y, &columns[i], sizeof(Four));
        }
}

/// The first pass: a strip of the picture to `lanes` rows of the result, side by side.
template <int Width>
struct ShrinkColumns {
    const std::uint8_t* pixels;  ///< of the strip, in the first row that is used
    std::int64_t stride;         ///< bytes from row to row
    std::int64_t channels;
    std::int64_t columns;  ///< of the strip, at most strip_pixels
    std::int64_t source_rows;
    const Taps* taps;        ///< of the rows of the result
    std::int64_t first_row;  ///< the row that `pixels` is in
    std::int64_t rows;       ///< of the result, at most `lanes`
    float* source;           ///< source_rows * strip_samples: the strip on white, 0 .. 255
    float* narrow;           ///< lanes * strip_samples: the strip in the result's rows
    float* side_by_side;     ///< columns * 3 samples of `lanes` floats, rounded up to 16 samples

    [[gnu::always_inline]] void operator()() const noexcept {
        for (std::int64_t y = 0; y < source_rows; ++y) {
            const std::uint8_t* in = pixels + y * stride;
            float* out = source + y * strip_samples;
            if (channels == 3) {
                for (std::int64_t i = 0; i < columns * 3; ++i) out[i] = static_cast<float>(in[i]);
            } else {
                for (std::int64_t x = 0; x < columns; ++x) {
                    const float alpha = static_cast<float>(in[x * 4 + 3]) / 255.0F;
                    const float white = 255.0F * (1.0F - alpha);
                    for (std::int64_t c = 0; c < 3; ++c)
                        out[x * 3 + c] = static_cast<float>(in[x * 4 + c]) * alpha + white;
                }
            }
        }
        using Floats = typename core::VectorOf<float, Width>::type;
        constexpr std::int64_t at_once = 4;
        for (std::int64_t r = 0; r < rows; ++r) {
            const float* const top = source + (taps[r].first - first_row) * strip_samples;
            const float* const weights = taps[r].weights;
            const std::int64_t count = taps[r].count;
            for (std::int64_t i = 0; i < columns * 3; i += Width * at_once) {
                Floats sums[at_once] = {};
                const float* in = top + i;
                for (std::int64_t t = 0; t < count; ++t, in += strip_samples) add_weighted(sums, weights[t], in);
                std::memcpy(narrow + r * strip_samples + i, sums, sizeof sums);
            }
        }
        for (std::int64_t i = 0; i < columns * 3; i += lanes)
            transpose16(narrow + i, strip_samples, side_by_side + i * lanes, lanes);
    }
};

/// The second pass: `lanes` rows side by side to rows of the result.
template <int Width>
struct ShrinkRows {
    const float* side_by_side;  ///< samples of `lanes` floats
    std::int64_t first_column;  ///< the picture's column that comes first there
    const Taps* taps;           ///< of the columns of the result
    std::int64_t width;         ///< of the result
    std::int64_t rows;          ///< of the result, at most `lanes`
    std::int64_t plane;         ///< floats from plane to plane of the result
    float* values;              ///< the result's first of these rows, in the first plane

    [[gnu::always_inline]] void operator()() const noexcept {
        using Floats = typename core::VectorOf<float, Width>::type;
        constexpr std::int64_t parts = lanes * 3 / Width;
        alignas(64) float done[lanes * lanes * 3] = {};  // pixel, channel, row
        alignas(64) float square[lanes * lanes];
        for (std::int64_t left = 0; left < width; left += lanes) {
            const std::int64_t columns = std::min(lanes, width - left);
            for (std::int64_t x = 0; x < columns; ++x) {
                const Taps& tap = taps[left + x];
                const float* in = side_by_side + (tap.first - first_column) * lanes * 3;
                Floats sums[parts] = {};
                for (std::int64_t t = 0; t < tap.count; ++t, in += lanes * 3) add_weighted(sums, tap.weights[t], in);
                std::memcpy(done + x * lanes * 3, sums, sizeof sums);
            }
            for (std::int64_t c = 0; c < 3; ++c) {
                transpose16(done + c * lanes, lanes * 3, square, lanes);
                for (std::int64_t r = 0; r < rows; ++r) {
                    float* const out = values + c * plane + r * width + left;
                    for (std::int64_t x = 0; x < columns; ++x) {
                        const float value = square[r * lanes + x];
                        const float low = value < 0.0F ? 0.0F : value;
                        out[x] = (low > 255.0F ? 255.0F : low) / 127.5F - 1.0F;
                    }
                }
            }
        }
    }
};

template <int Width>
void resample_by(const Picture& picture, const Axis& columns, const Axis& rows, float* values, core::SimdLevel level) {
    const auto width = static_cast<std::int64_t>(columns.taps.size());
    const auto height = static_cast<std::int64_t>(rows.taps.size());
    const std::int64_t used_columns = columns.end - columns.first;
    std::int64_t most_rows = 1;  // of the picture for one pass
    for (std::int64_t y = 0; y < height; y += lanes) {
        const Taps& last = rows.taps[static_cast<std::size_t>(std::min(y + lanes, height) - 1)];
        most_rows = std::max(most_rows, last.first + last.count - rows.taps[static_cast<std::size_t>(y)].first);
    }
    std::vector<float> source(static_cast<std::size_t>(most_rows * strip_samples));
    std::vector<float> narrow(static_cast<std::size_t>(lanes * strip_samples));
    std::vector<float> side_by_side(static_cast<std::size_t>((used_columns * 3 + lanes) * lanes));
    for (std::int64_t y = 0; y < height; y += lanes) {
        const Taps* const taps = &rows.taps[static_cast<std::size_t>(y)];
        const std::int64_t count = std::min(lanes, height - y);
        const std::int64_t source_rows = taps[count - 1].first + taps[count - 1].count - taps[0].first;
        for (std::int64_t x = 0; x < used_columns; x += strip_pixels) {
            const std::int64_t at = (taps[0].first * picture.width + columns.first + x) * picture.channels;
            core::run_at(level, ShrinkColumns<Width>{picture.pixels.data() + at, picture.width * picture.channels,
                                                     picture.channels, std::min(strip_pixels, used_columns - x),
                                                     source_rows, taps, taps[0].first, count, source.data(),
                                                     narrow.data(), side_by_side.data() + x * 3 * lanes});
        }
        core::run_at(level, ShrinkRows<Width>{side_by_side.data(), columns.first, columns.taps.data(), width, count,
                                              width * height, values + y * width});
    }
}

}  // namespace detail

STRATA_INLINE void resize_and_crop_into(const Picture& picture, const Frame& frame, std::span<float> values,
                                        core::SimdLevel level) {
    const auto [width, height] = frame.target;
    if (picture.width < 1 || picture.height < 1 || width < 1 || height < 1)
        throw Error{Errc::bad_picture, "a picture without pixels cannot be resized", "remove the empty picture"};
    if (picture.pixels.size() != static_cast<std::size_t>(picture.width * picture.height * picture.channels) ||
        (picture.channels != 3 && picture.channels != 4) ||
        values.size() != static_cast<std::size_t>(3 * width * height))
        throw Error{Errc::bad_picture, "a picture's memory does not fit its size",
                    "pass 3 or 4 bytes a pixel and 3 floats a result"};
    const double across = static_cast<double>(picture.width) / frame.width;
    const double down = static_cast<double>(picture.height) / frame.height;
    const detail::Axis columns = detail::axis_of(picture.width, width, across, frame.left * across);
    const detail::Axis rows = detail::axis_of(picture.height, height, down, frame.top * down);
    switch (level) {
        case core::SimdLevel::avx512:
            return detail::resample_by<16>(picture, columns, rows, values.data(), level);
        case core::SimdLevel::avx2:
            return detail::resample_by<8>(picture, columns, rows, values.data(), level);
        case core::SimdLevel::baseline:
            break;
    }
    detail::resample_by<4>(picture, columns, rows, values.data(), level);
}

STRATA_INLINE PlanarImage resize_and_crop(const Picture& picture, const Frame& frame, core::SimdLevel level) {
    const auto [width, height] = frame.target;
    const std::int64_t count = width > 0 && height > 0 ? 3 * width * height : 0;
    PlanarImage image{width, height, std::vector<float>(static_cast<std::size_t>(count))};
    resize_and_crop_into(picture, frame, image.values, level);
    return image;
}

STRATA_INLINE void cover_and_crop_into(const Picture& picture, std::int64_t width, std::int64_t height,
                                       std::span<float> values, core::SimdLevel level) {
    resize_and_crop_into(picture, centered({picture.width, picture.height}, {width, height}), values, level);
}

STRATA_INLINE PlanarImage cover_and_crop(const Picture& picture, std::int64_t width, std::int64_t height,
                                         core::SimdLevel level) {
    return resize_and_crop(picture, centered({picture.width, picture.height}, {width, height}), level);
}

}  // namespace strata::pictures
