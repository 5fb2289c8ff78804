#pragma once
// strata/core/impl/amounts.ipp - digits in groups, and units of bytes.

#include <array>
#include <cstddef>
#include <cstdio>

#include <strata/core/amounts.hpp>

namespace strata::core {

STRATA_INLINE std::string with_commas(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return digits;
}

STRATA_INLINE std::string in_megabytes(std::uint64_t bytes) {
    constexpr std::array units{"kB", "MB", "GB", "TB", "PB"};
    if (bytes < 1000) return std::to_string(bytes) + " bytes";
    auto value = static_cast<double>(bytes) / 1000;
    std::size_t unit = 0;
    while (value >= 999.95 && unit + 1 < units.size()) {
        value /= 1000;
        ++unit;
    }
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
    return text.data();
}

}  // namespace strata::core
