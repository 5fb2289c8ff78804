#pragma once
// strata/pictures/impl/simpletuner_sizes.ipp - the arithmetic of Python, in the order it is done there.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/pictures/simpletuner_sizes.hpp>

namespace strata::pictures {

namespace detail {

/// Python's round(value, decimals) * 10^decimals, at least 1. to_chars rounds the exact binary value, halves to even.
inline std::int64_t rounded_steps(double value, std::int64_t decimals) {
    std::array<char, 400> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed,
                                   static_cast<int>(decimals))
                         .ptr;
    const auto digits = std::remove(text.data(), end, '.');
    std::int64_t steps = 0;
    std::from_chars(text.data(), digits, steps);
    return std::max<std::int64_t>(steps, 1);
}

inline double power_of_ten(std::int64_t exponent) noexcept {
    double power = 1;
    for (std::int64_t i = 0; i < exponent; ++i) power *= 10;
    return power;
}

inline std::int64_t rounded_to(double value, std::int64_t alignment) noexcept {
    const auto steps = static_cast<std::int64_t>(std::nearbyint(value / static_cast<double>(alignment)));
    return std::max<std::int64_t>(steps, 1) * alignment;
}

inline std::int64_t whole(double value) noexcept { return static_cast<std::int64_t>(value); }

inline double megapixels_of(const SimpletunerRule& rule) noexcept {
    return rule.resolution_type == config::ResolutionType::area ? rule.resolution
                                                                : rule.resolution * rule.resolution / 1e6;
}

inline PictureSize area_size(const SimpletunerRule& rule, double ratio) noexcept {
    const auto edge = static_cast<double>(rounded_to(std::floor(std::sqrt(megapixels_of(rule) * 1e6)), rule.alignment));
    return {rounded_to(edge * std::sqrt(ratio), rule.alignment), rounded_to(edge / std::sqrt(ratio), rule.alignment)};
}

}  // namespace detail

STRATA_INLINE double rounded_ratio(const PictureSize& size, std::int64_t rounding) {
    const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
    return static_cast<double>(detail::rounded_steps(ratio, rounding)) / detail::power_of_ten(rounding);
}

STRATA_INLINE SimpletunerSize simpletuner_size(const SimpletunerRule& rule, double ratio, const PictureSize& picture) {
    if (rule.resolution_type == config::ResolutionType::pixel) {
        const double edge = rule.resolution;
        const bool is_tall = picture.width < picture.height;
        const PictureSize target{detail::rounded_to(is_tall ? edge : std::floor(edge * ratio), rule.alignment),
                                 detail::rounded_to(is_tall ? std::floor(edge / ratio) : edge, rule.alignment)};
        return {target, rounded_ratio(target, rule.rounding)};
    }
    const PictureSize target = detail::area_size(rule, ratio);
    return {target, rounded_ratio(target, rule.rounding)};
}

STRATA_INLINE std::int64_t simpletuner_square(const SimpletunerRule& rule) {
    if (rule.resolution_type == config::ResolutionType::pixel)
        return detail::rounded_to(rule.resolution, rule.alignment);
    const double megapixels = detail::megapixels_of(rule);
    constexpr std::array<std::pair<double, std::int64_t>, 5> known{
        {{0.25, 512}, {0.5, 768}, {1.0, 1024}, {2.0, 1536}, {4.0, 2048}}};
    for (const auto& [size, edge] : known)
        if (std::abs(megapixels - size) < 0.05) return detail::rounded_to(static_cast<double>(edge), rule.alignment);
    return detail::rounded_to(std::sqrt(megapixels * 1e6), rule.alignment);
}

STRATA_INLINE PictureSize simpletuner_intermediary(const SimpletunerRule& rule, const PictureSize& picture,
                                                   const PictureSize& target) {
    const double ratio = static_cast<double>(picture.width) / static_cast<double>(picture.height);
    const auto across = [&](std::int64_t height) { return detail::whole(static_cast<double>(height) * ratio); };
    const auto down = [&](std::int64_t width) { return detail::whole(static_cast<double>(width) / ratio); };
    PictureSize size;
    if (rule.resolution_type == config::ResolutionType::pixel) {
        const std::int64_t edge = detail::whole(rule.resolution);
        if (ratio >= 1) {
            size.height = std::max(target.height, edge);
            size.width = across(size.height);
        } else {
            size.width = std::max(target.width, edge);
            size.height = down(size.width);
        }
        if (size.width < target.width) size = {target.width, down(target.width)};
        if (size.height < target.height) size = {across(target.height), target.height};
    } else {
        if (target.width < target.height)
            size = {target.width, down(target.width)};
        else
            size = {across(target.height), target.height};
        if (const std::int64_t more = target.width - size.width; more > 0)
            size = {target.width, size.height + down(more)};
        else if (const std::int64_t higher = target.height - size.height; higher > 0)
            size = {size.width + across(higher), target.height};
    }
    return {std::max(size.width, target.width), std::max(size.height, target.height)};
}

}  // namespace strata::pictures
