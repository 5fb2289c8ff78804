#pragma once
// strata/data/impl/resample.ipp - separable Lanczos resampling.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include <strata/core/error.hpp>
#include <strata/data/resample.hpp>

namespace strata::data {

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
    std::int64_t first = 0;
    std::vector<float> weights;
};

/// Taps of an axis.
///
///   source   samples there are
///   result   samples wanted
///   step     source samples from one result sample to the next
///   begin    where the first result sample begins, in source samples
inline std::vector<Taps> axis_taps(std::int64_t source, std::int64_t result, double step, double begin) {
    std::vector<Taps> all(static_cast<std::size_t>(result));
    const double stretch = std::max(1.0, step);  // when shrinking the filter covers what a result sample stands for
    for (std::int64_t i = 0; i < result; ++i) {
        const double center = begin + (static_cast<double>(i) + 0.5) * step;
        const auto first = static_cast<std::int64_t>(std::floor(center - 3 * stretch + 0.5));
        const auto last = static_cast<std::int64_t>(std::floor(center + 3 * stretch + 0.5));  // exclusive
        Taps& taps = all[static_cast<std::size_t>(i)];
        taps.first = std::clamp<std::int64_t>(first, 0, source - 1);
        const std::int64_t end = std::clamp<std::int64_t>(last, taps.first + 1, source);
        std::vector<double> weights;
        double sum = 0;
        for (std::int64_t j = taps.first; j < end; ++j) {
            weights.push_back(lanczos3((static_cast<double>(j) + 0.5 - center) / stretch));
            sum += weights.back();
        }
        for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
    }
    return all;
}

}  // namespace detail

STRATA_INLINE PlanarImage cover_and_crop(const Picture& picture, std::int64_t width, std::int64_t height) {
    if (picture.width < 1 || picture.height < 1 || width < 1 || height < 1)
        throw Error{Errc::bad_picture, "a picture without pixels cannot be resized", "remove the empty picture"};
    const auto source_width = static_cast<double>(picture.width);
    const auto source_height = static_cast<double>(picture.height);
    const double step = std::min(source_width / static_cast<double>(width), source_height / static_cast<double>(height));
    const double left = (source_width - step * static_cast<double>(width)) / 2;
    const double top = (source_height - step * static_cast<double>(height)) / 2;
    const auto columns = detail::axis_taps(picture.width, width, step, left);
    const auto rows = detail::axis_taps(picture.height, height, step, top);

    // Only the source rows that the second pass reads.
    const std::int64_t first_row = rows.front().first;
    const std::int64_t end_row = rows.back().first + static_cast<std::int64_t>(rows.back().weights.size());
    const auto w = static_cast<std::size_t>(width);
    const auto h = static_cast<std::size_t>(height);
    const auto source_rows = static_cast<std::size_t>(end_row - first_row);

    std::vector<float> line(static_cast<std::size_t>(picture.width) * 3);  // one source row, on white, 0 .. 255
    std::vector<float> narrow(source_rows * w * 3);                        // rows of interleaved RGB
    for (std::size_t y = 0; y < source_rows; ++y) {
        const std::uint8_t* pixel =
            picture.rgba.data() + (static_cast<std::size_t>(first_row) + y) * static_cast<std::size_t>(picture.width) * 4;
        for (std::size_t x = 0; x < static_cast<std::size_t>(picture.width); ++x, pixel += 4) {
            const float alpha = static_cast<float>(pixel[3]) / 255.0F;
            const float white = 255.0F * (1.0F - alpha);
            for (std::size_t c = 0; c < 3; ++c) line[x * 3 + c] = static_cast<float>(pixel[c]) * alpha + white;
        }
        float* out = narrow.data() + y * w * 3;
        for (const detail::Taps& taps : columns) {
            float red = 0;
            float green = 0;
            float blue = 0;
            const float* in = line.data() + static_cast<std::size_t>(taps.first) * 3;
            for (const float weight : taps.weights) {
                red += weight * in[0];
                green += weight * in[1];
                blue += weight * in[2];
                in += 3;
            }
            out[0] = red;
            out[1] = green;
            out[2] = blue;
            out += 3;
        }
    }

    PlanarImage image{width, height, std::vector<float>(3 * h * w)};
    std::vector<float> sum(w * 3);
    for (std::size_t y = 0; y < h; ++y) {
        std::fill(sum.begin(), sum.end(), 0.0F);
        const float* in = narrow.data() + static_cast<std::size_t>(rows[y].first - first_row) * w * 3;
        for (const float weight : rows[y].weights) {
            for (std::size_t i = 0; i < w * 3; ++i) sum[i] += weight * in[i];
            in += w * 3;
        }
        for (std::size_t x = 0; x < w; ++x)
            for (std::size_t c = 0; c < 3; ++c)
                image.values[(c * h + y) * w + x] = std::clamp(sum[x * 3 + c], 0.0F, 255.0F) / 127.5F - 1.0F;
    }
    return image;
}

}  // namespace strata::data
