#pragma once
// strata/core/impl/crc32c.ipp - CRC32C in three lanes.

#include <array>

#include <strata/core/crc32c.hpp>
#include <strata/core/detail/crc32c_steps.hpp>

namespace strata::core {

namespace detail {

#ifdef __x86_64__
inline constexpr std::size_t crc32c_lane = 512;  // bytes

/// What so many zero bytes as a lane is long make of a state, by each byte of the state: the state of a lane that
/// follows another is the sum (exclusive or) of its own from zero and this of the other, because a CRC is linear.
inline constexpr std::array<std::array<std::uint32_t, 256>, 4> crc32c_after_lane = [] {
    std::array<std::array<std::uint32_t, 256>, 4> after{};
    for (std::size_t byte = 0; byte < 4; ++byte) {
        for (std::size_t bit = 0; bit < 8; ++bit) {
            std::uint32_t state = std::uint32_t{1} << (8 * byte + bit);
            for (std::size_t i = 0; i < crc32c_lane; ++i) state = (state >> 8U) ^ crc32c_table[state & 0xffU];
            after[byte][std::size_t{1} << bit] = state;
        }
        for (std::size_t value = 1; value < 256; ++value)
            after[byte][value] = after[byte][value & (value - 1)] ^ after[byte][value & (~value + 1)];
    }
    return after;
}();

inline std::uint64_t crc32c_skip_lane(std::uint64_t state) noexcept {
    return crc32c_after_lane[0][state & 0xffU] ^ crc32c_after_lane[1][state >> 8U & 0xffU] ^
           crc32c_after_lane[2][state >> 16U & 0xffU] ^ crc32c_after_lane[3][state >> 24U & 0xffU];
}

/// All whole words of 8 bytes. One CRC is a chain of instructions that wait for each other: three side by side, put
/// together by table, take little more time than one.
[[gnu::target("sse4.2")]] inline std::uint32_t crc32c_words(std::uint32_t before,
                                                            std::span<const std::byte> bytes) noexcept {
    const std::byte* data = bytes.data();
    std::size_t left = bytes.size();
    std::uint64_t first = before;
    for (; left >= 3 * crc32c_lane; data += 3 * crc32c_lane, left -= 3 * crc32c_lane) {
        std::uint64_t second = 0;
        std::uint64_t third = 0;
        for (std::size_t i = 0; i < crc32c_lane; i += 8) {
            first = crc32c_word(first, data + i);
            second = crc32c_word(second, data + crc32c_lane + i);
            third = crc32c_word(third, data + 2 * crc32c_lane + i);
        }
        first = crc32c_skip_lane(crc32c_skip_lane(first) ^ second) ^ third;
    }
    for (; left >= 8; data += 8, left -= 8) first = crc32c_word(first, data);
    return static_cast<std::uint32_t>(first);
}
#else
inline std::uint32_t crc32c_words(std::uint32_t state, std::span<const std::byte>) noexcept { return state; }
#endif

}  // namespace detail

STRATA_INLINE std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before, bool hardware) noexcept {
    std::uint32_t state = ~before;
    if (hardware && detail::has_crc32c()) {
        state = detail::crc32c_words(state, bytes);
        bytes = bytes.subspan(bytes.size() / 8 * 8);
    }
    return ~detail::crc32c_by_table(state, bytes);
}

}  // namespace strata::core
