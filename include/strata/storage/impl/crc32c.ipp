#pragma once
// strata/storage/impl/crc32c.ipp - CRC32C by instruction and by table.

#include <array>
#include <cstring>

#include <strata/core/inline.hpp>
#include <strata/storage/crc32c.hpp>

namespace strata::storage {

namespace detail {

inline constexpr std::array<std::uint32_t, 256> crc32c_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0x82f63b78U : 0U);
        table[i] = value;
    }
    return table;
}();

#ifdef __x86_64__
inline bool has_crc32c() noexcept {
    static const bool has = __builtin_cpu_supports("sse4.2") != 0;
    return has;
}

/// All whole words of 8 bytes.
[[gnu::target("sse4.2")]] inline std::uint32_t crc32c_words(std::uint32_t crc,
                                                            std::span<const std::byte> bytes) noexcept {
    std::uint64_t sum = crc;
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    return static_cast<std::uint32_t>(sum);
}
#else
inline bool has_crc32c() noexcept { return false; }
inline std::uint32_t crc32c_words(std::uint32_t crc, std::span<const std::byte>) noexcept { return crc; }
#endif

}  // namespace detail

STRATA_INLINE std::uint32_t crc32c(std::span<const std::byte> bytes, bool hardware) noexcept {
    std::uint32_t crc = ~0U;
    if (hardware && detail::has_crc32c()) {
        crc = detail::crc32c_words(crc, bytes);
        bytes = bytes.subspan(bytes.size() / 8 * 8);
    }
    for (const std::byte byte : bytes)
        crc = (crc >> 8U) ^ detail::crc32c_table[(crc ^ static_cast<std::uint32_t>(byte)) & 0xffU];
    return ~crc;
}

}  // namespace strata::storage
