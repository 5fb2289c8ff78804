#pragma once
// strata/config/impl/sample_size.ipp - 1024, "1024x768,832x1216" and 1.0 as sizes.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <strata/config/impl/value.ipp>
#include <strata/config/sample_size.hpp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>

namespace strata::config {

namespace detail {

inline constexpr double most_megapixels = 20;  // above, a number is an edge
inline constexpr std::int64_t least_edge = 8;
inline constexpr std::int64_t most_edge = 16384;

inline std::optional<SampleSize> size_of(double width, double height) {
    const auto is_edge = [](double edge) {
        return edge == std::floor(edge) && edge >= least_edge && edge <= most_edge;
    };
    if (!is_edge(width) || !is_edge(height)) return std::nullopt;
    return SampleSize{static_cast<std::int64_t>(width), static_cast<std::int64_t>(height)};
}

inline std::optional<SampleSize> square_of(double number) {
    if (number > 0 && number <= most_megapixels) number = 8 * std::nearbyint(1024 * std::sqrt(number) / 8);
    return size_of(number, number);
}

/// "1024", "1024x768", "1.0".
inline std::optional<SampleSize> size_in(std::string_view text) {
    const std::size_t x = text.find_first_of("xX");
    const auto width = number_in<double>(core::trimmed(text.substr(0, x)));
    if (x == std::string_view::npos) return width ? square_of(*width) : std::nullopt;
    const auto height = number_in<double>(core::trimmed(text.substr(x + 1)));
    return width && height ? size_of(*width, *height) : std::nullopt;
}

inline void add_sizes(const Value& value, std::vector<SampleSize>& sizes) {
    const auto take = [&](std::optional<SampleSize> size) {
        if (!size)
            value.refuse(Errc::bad_value, "is " + value.shown() + ", no size of a picture",
                         "write the edge of a square, 8 to 16384 pixels, or width and height: 1024x768");
        sizes.push_back(*size);
    };
    if (value.json().is_number()) return take(square_of(value.number()));
    const std::string text = value.text();
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        take(size_in(core::trimmed(std::string_view{text}.substr(begin, end - begin))));
        begin = end + 1;
    }
}

}  // namespace detail

STRATA_INLINE std::vector<SampleSize> sample_sizes_of(const Value& value) {
    std::vector<SampleSize> sizes;
    if (!value.json().is_array()) {
        detail::add_sizes(value, sizes);
        return sizes;
    }
    for (const Value& element : value.elements()) detail::add_sizes(element, sizes);
    if (sizes.empty()) value.refuse(Errc::bad_value, "is an empty list", "name a size: 1024, or \"1024x768\"");
    return sizes;
}

}  // namespace strata::config
