#pragma once
// strata/core/fnv1a.hpp - FNV-1a: a number for a text that is the same on every machine and in every version.

#include <array>
#include <cstdint>
#include <string_view>

namespace strata::core {

/// What FNV-1a of no bytes is.
inline constexpr std::uint64_t fnv1a_start = 0xCBF29CE484222325U;

/// FNV-1a of 64 bits (Fowler, Noll, Vo). Against accidents and for spreading, not against people. Names of files
/// and what is in them depend on it.
///
///   hash  of what came before: a hash of parts is that of the whole
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t hash = fnv1a_start) noexcept {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
    return hash;
}
static_assert(fnv1a("") == fnv1a_start && fnv1a("a") == 0xAF63DC4C8601EC8CU);
static_assert(fnv1a("b", fnv1a("a")) == fnv1a("ab"));

/// The same of 128 bits, the upper half first: accidental collisions do not happen.
constexpr std::array<std::uint64_t, 2> fnv1a_128(std::string_view text) noexcept {
    __extension__ using Wide = unsigned __int128;
    Wide hash = (Wide{0x6C62272E07BB0142U} << 64) | 0x62B821756295C58DU;
    const Wide prime = (Wide{1} << 88) | 0x13BU;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
    return {static_cast<std::uint64_t>(hash >> 64), static_cast<std::uint64_t>(hash)};
}

}  // namespace strata::core
