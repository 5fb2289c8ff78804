#pragma once
// strata/core/impl/amounts.ipp - digits in groups, units of bytes and of time.

#include <algorithm>
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

STRATA_INLINE std::string in_words(std::chrono::seconds time) {
    const auto all = std::max<std::chrono::seconds::rep>(time.count(), 0);
    const auto pair = [](auto large, const char* its_unit, auto small, const char* small_unit) {
        std::string text = std::to_string(large) + its_unit;
        if (small > 0) text += " " + std::to_string(small) + small_unit;
        return text;
    };
    if (all < 60) return std::to_string(all) + " s";
    if (all < 3600) return pair(all / 60, " min", all % 60, " s");
    return pair(all / 3600, " h", all % 3600 / 60, " min");
}

}  // namespace strata::core
