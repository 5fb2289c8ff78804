#pragma once
// strata/core/impl/amounts.ipp - digits in groups, units of bytes and of time.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

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

STRATA_INLINE std::optional<std::uint64_t> bytes_in(std::string_view text) {
    struct Unit {
        std::string_view name;
        double bytes;
    };
    constexpr std::array<Unit, 11> units{{{"", 1},
                                          {"B", 1},
                                          {"kB", 1e3},
                                          {"KB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0},
                                          {"TiB", 1099511627776.0}}};
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string number{text.substr(0, digits)};
    std::string_view name = text.substr(digits);
    if (name.starts_with(' ')) name.remove_prefix(1);
    const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& one) { return one.name == name; });
    char* end = nullptr;
    const double count = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != 0 || end == number.c_str() || unit == units.end()) return std::nullopt;
    const double bytes = count * unit->bytes;
    if (bytes >= 9223372036854775808.0) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
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
