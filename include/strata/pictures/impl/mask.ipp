#pragma once
// strata/pictures/impl/mask.ipp - means over areas, columns first.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/pictures/mask.hpp>

namespace strata::pictures {

namespace detail {

/// The samples that a result sample covers; those between the first and the last are covered whole.
struct Cover {
    std::int64_t first = 0;
    std::int64_t last = 0;
    double of_first = 1;  ///< how much of it, in samples
    double of_last = 0;   ///< 0 where it is the first
    double all = 1;

    /// The mean of value(i) over the samples.
    template <class Value>
    [[nodiscard]] float mean(const Value& value) const {
        double sum = of_first * value(first);
        for (std::int64_t i = first + 1; i < last; ++i) sum += value(i);
        if (last > first) sum += of_last * value(last);
        return static_cast<float>(sum / all);
    }
};

///   begin, step  in samples of the source: of the first result sample, and from one to the next
inline std::vector<Cover> covers_of(std::int64_t source, std::int64_t result, double step, double begin) {
    std::vector<Cover> covers;
    covers.reserve(static_cast<std::size_t>(result));
    const auto end_of_source = static_cast<double>(source);
    for (std::int64_t i = 0; i < result; ++i) {
        const double low = std::clamp(begin + static_cast<double>(i) * step, 0.0, end_of_source);
        const double high = std::clamp(begin + static_cast<double>(i + 1) * step, 0.0, end_of_source);
        Cover one;
        one.first = std::min(static_cast<std::int64_t>(std::floor(low)), source - 1);
        one.last = std::clamp(static_cast<std::int64_t>(std::ceil(high)) - 1, one.first, source - 1);
        if (one.last > one.first) {
            one.of_first = static_cast<double>(one.first + 1) - low;
            one.of_last = high - static_cast<double>(one.last);
            one.all = one.of_first + static_cast<double>(one.last - one.first - 1) + one.of_last;
        }
        covers.push_back(one);
    }
    return covers;
}

}  // namespace detail

STRATA_INLINE void resize_mask_into(const Picture& picture, const Frame& frame, std::span<float> values) {
    const std::int64_t width = frame.target.width;
    const std::int64_t height = frame.target.height;
    if (picture.width < 1 || picture.height < 1 || width < 1 || height < 1)
        throw Error{Errc::bad_picture, "a mask without pixels cannot be resized", "remove the empty picture"};
    if (picture.pixels.size() != static_cast<std::size_t>(picture.width * picture.height * picture.channels) ||
        (picture.channels != 3 && picture.channels != 4) || values.size() != static_cast<std::size_t>(width * height))
        throw Error{Errc::bad_picture, "a mask's memory does not fit its size",
                    "pass 3 or 4 bytes a pixel and a float a result"};
    const double across = static_cast<double>(picture.width) / frame.width;
    const double down = static_cast<double>(picture.height) / frame.height;
    const std::vector<detail::Cover> columns = detail::covers_of(picture.width, width, across, frame.left * across);
    const std::vector<detail::Cover> rows = detail::covers_of(picture.height, height, down, frame.top * down);

    const auto value_at = [&](const std::uint8_t* pixel) {
        const int sum = pixel[0] + pixel[1] + pixel[2];
        return picture.channels == 3 ? sum / 765.0 : sum / 765.0 * (pixel[3] / 255.0);
    };
    const std::int64_t first = rows.front().first;
    const std::int64_t count = rows.back().last - first + 1;
    std::vector<float> narrow(static_cast<std::size_t>(count * width));  // rows of the mask, columns of the result
    for (std::int64_t y = 0; y < count; ++y) {
        const std::uint8_t* const row = picture.pixels.data() + (first + y) * picture.width * picture.channels;
        for (std::int64_t x = 0; x < width; ++x)
            narrow[static_cast<std::size_t>(y * width + x)] = columns[static_cast<std::size_t>(x)].mean(
                [&](std::int64_t i) { return value_at(row + i * picture.channels); });
    }
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
            values[static_cast<std::size_t>(y * width + x)] =
                rows[static_cast<std::size_t>(y)].mean([&](std::int64_t i) {
                    return static_cast<double>(narrow[static_cast<std::size_t>((i - first) * width + x)]);
                });
}

}  // namespace strata::pictures
