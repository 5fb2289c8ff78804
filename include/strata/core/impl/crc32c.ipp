#pragma once
// strata/core/impl/crc32c.ipp - CRC32C by table and by instruction, in three lanes and in four parts.

#include <cstring>

#include <strata/core/crc32c.hpp>
#include <strata/core/simd.hpp>

namespace strata::core {

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

/// The state after these bytes. A state is a sum before its bits are inverted.
inline std::uint32_t crc32c_by_table(std::uint32_t state, std::span<const std::byte> bytes) noexcept {
    for (const std::byte byte : bytes)
        state = (state >> 8U) ^ crc32c_table[(state ^ static_cast<std::uint32_t>(byte)) & 0xffU];
    return state;
}

/// By instruction, of 8 bytes.
[[gnu::always_inline]] inline std::uint64_t crc32c_word(std::uint64_t state, const std::byte* data) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    return crc32_step(state, word);
}

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

/// All whole words of 8 bytes: three lanes side by side, put together by table, take little more time than one.
struct Crc32cWords {
    std::span<const std::byte> bytes;
    std::uint32_t& state;

    [[gnu::always_inline]] void operator()() const noexcept {
        const std::byte* data = bytes.data();
        std::size_t left = bytes.size();
        std::uint64_t first = state;
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
        state = static_cast<std::uint32_t>(first);
    }
};

/// One line of 64 bytes in every `stride`.
struct Crc32cLines {
    const std::byte* data;
    std::size_t end;
    std::size_t stride;
    std::array<std::uint32_t, 4>& states;

    [[gnu::always_inline]] void operator()() const noexcept {
        std::uint64_t a = states[0];
        std::uint64_t b = states[1];
        std::uint64_t c = states[2];
        std::uint64_t d = states[3];
        for (std::size_t i = 0; i < end; i += stride) {
            const std::byte* const line = data + i;
            a = crc32c_word(crc32c_word(a, line), line + 32);
            b = crc32c_word(crc32c_word(b, line + 8), line + 40);
            c = crc32c_word(crc32c_word(c, line + 16), line + 48);
            d = crc32c_word(crc32c_word(d, line + 24), line + 56);
        }
        states = {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(c),
                  static_cast<std::uint32_t>(d)};
    }
};

}  // namespace detail

STRATA_INLINE std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before, bool hardware) noexcept {
    std::uint32_t state = ~before;
    if (hardware && run_with_crc32(detail::Crc32cWords{bytes, state})) bytes = bytes.subspan(bytes.size() / 8 * 8);
    return ~detail::crc32c_by_table(state, bytes);
}

STRATA_INLINE std::array<std::uint32_t, 4> crc32c_of_four(std::span<const std::byte> bytes, std::size_t stride,
                                                          bool hardware) noexcept {
    std::array<std::uint32_t, 4> states{~0U, ~0U, ~0U, ~0U};
    const std::size_t end = bytes.size() / 64 * 64;  // of whole lines
    if (!hardware || !run_with_crc32(detail::Crc32cLines{bytes.data(), end, stride, states})) {
        for (std::size_t i = 0; i < end; i += stride)
            for (std::size_t word = 0; word < 8; ++word)
                states[word % 4] = detail::crc32c_by_table(states[word % 4], bytes.subspan(i + 8 * word, 8));
    }
    states[3] = detail::crc32c_by_table(states[3], bytes.subspan(end));
    for (std::uint32_t& state : states) state = ~state;
    return states;
}

}  // namespace strata::core
