#pragma once
// strata/core/detail/crc32c_steps.hpp - CRC32C of a few bytes, by table and by the CPU's instruction: what sums are made of.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace strata::core::detail {

inline constexpr std::array<std::uint32_t, 256> crc32c_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0x82f63b78U : 0U);
        table[i] = value;
    }
    return table;
}();

/// The state after these bytes. A state is a sum before its bits are inverted.
inline std::uint32_t crc32c_by_table(std::uint32_t state, std::span<const std::byte> bytes) noexcept {
    for (const std::byte byte : bytes)
        state = (state >> 8U) ^ crc32c_table[(state ^ static_cast<std::uint32_t>(byte)) & 0xffU];
    return state;
}

#ifdef __x86_64__
inline bool has_crc32c() noexcept {
    static const bool has = __builtin_cpu_supports("sse4.2") != 0;
    return has;
}

/// Of 8 bytes.
[[gnu::target("sse4.2")]] inline std::uint64_t crc32c_word(std::uint64_t state, const std::byte* data) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    return __builtin_ia32_crc32di(state, word);
}
#else
inline bool has_crc32c() noexcept { return false; }
#endif

}  // namespace strata::core::detail
