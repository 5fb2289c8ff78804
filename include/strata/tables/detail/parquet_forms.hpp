#pragma once
// strata/tables/detail/parquet_forms.hpp - stored bytes that mean a number or a name: decimals, float16, INT96, UUIDs.

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata::tables::detail::parquet {

/// An integer of 1 to 16 bytes, the high one first, over 10^scale. Nothing for another number of bytes.
[[nodiscard]] std::optional<double> decimal_of(std::string_view bytes, int scale) noexcept;

/// IEEE 754 binary16, little-endian. `bytes` has two.
[[nodiscard]] double float16_of(std::string_view bytes) noexcept;

/// Nanoseconds of a day and a Julian day, as microseconds since 1970, rounded down. `bytes` has twelve. Nothing where
/// 64 bits are too few.
[[nodiscard]] std::optional<std::int64_t> time96_of(std::string_view bytes) noexcept;

inline constexpr std::size_t uuid_letters = 36;
/// Writes "123e4567-e89b-12d3-a456-426614174000" to `out`. `bytes` has sixteen, the high one first.
void write_uuid(std::string_view bytes, char* out) noexcept;

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_forms.ipp>
#endif
