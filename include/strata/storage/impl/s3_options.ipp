#pragma once
// strata/storage/impl/s3_options.ipp - a bucket's traffic in one line.

#include <array>
#include <cstdio>

#include <strata/core/inline.hpp>
#include <strata/storage/s3_options.hpp>

namespace strata::storage {

namespace detail {

/// "1,024".
inline std::string with_commas(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
    return digits;
}

/// "307.2 MB"; powers of 1000, as traffic is billed.
inline std::string in_megabytes(std::uint64_t bytes) {
    constexpr std::array units{"kB", "MB", "GB", "TB", "PB"};
    if (bytes < 1000) return std::to_string(bytes) + " bytes";
    auto value = static_cast<double>(bytes) / 1000;
    std::size_t unit = 0;
    while (value >= 999.95 && unit + 1 < units.size()) {
        value /= 1000;
        ++unit;
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.1f %s", value, units[unit]);
    return text;
}

}  // namespace detail

STRATA_INLINE std::string summary(const S3Traffic& traffic) {
    using detail::with_commas;
    std::string text = with_commas(traffic.list) + " LIST, " + with_commas(traffic.head) + " HEAD, " +
                       with_commas(traffic.get) + " GET, " + with_commas(traffic.put) + " PUT, " +
                       with_commas(traffic.remove) + " DELETE";
    if (traffic.retries > 0) text += " (" + with_commas(traffic.retries) + " of them again after a failure)";
    return text + ", " + detail::in_megabytes(traffic.bytes_in) + " in, " + detail::in_megabytes(traffic.bytes_out) +
           " out";
}

}  // namespace strata::storage
