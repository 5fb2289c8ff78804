#pragma once
// strata/tables/impl/parquet_forms.ipp - bytes into numbers and names.

#include <cmath>
#include <cstring>

#include <strata/core/elements.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/inline.hpp>
#include <strata/tables/detail/parquet_forms.hpp>

namespace strata::tables::detail::parquet {

STRATA_INLINE std::optional<double> decimal_of(std::string_view bytes, int scale) noexcept {
    if (bytes.empty() || bytes.size() > 16) return std::nullopt;
    __extension__ using Wide = unsigned __int128;
    __extension__ using Signed = __int128;
    Wide number = (static_cast<unsigned char>(bytes[0]) & 0x80U) != 0 ? ~Wide{0} : Wide{0};
    for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
    return static_cast<double>(static_cast<Signed>(number)) / std::pow(10.0, scale);
}

STRATA_INLINE double float16_of(std::string_view bytes) noexcept {
    fp16 number;
    std::memcpy(&number, bytes.data(), sizeof number);
    return static_cast<double>(to_float(number));
}

STRATA_INLINE std::optional<std::int64_t> time96_of(std::string_view bytes) noexcept {
    std::int64_t nanoseconds;
    std::int32_t day;
    std::memcpy(&nanoseconds, bytes.data(), 8);
    std::memcpy(&day, bytes.data() + 8, 4);
    constexpr std::int64_t first_day = 2'440'588;  // 1970-01-01
    constexpr std::int64_t day_us = 86'400'000'000;
    const std::int64_t of_day = nanoseconds / 1000 - (nanoseconds % 1000 < 0 ? 1 : 0);
    std::int64_t whole;
    if (__builtin_mul_overflow(day - first_day, day_us, &whole) || __builtin_add_overflow(whole, of_day, &whole))
        return std::nullopt;
    return whole;
}

STRATA_INLINE void write_uuid(std::string_view bytes, char* out) noexcept {
    constexpr std::string_view digits = "0123456789abcdef";
    for (std::size_t i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) *out++ = '-';
        const auto byte = static_cast<unsigned char>(bytes[i]);
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
}

}  // namespace strata::tables::detail::parquet
