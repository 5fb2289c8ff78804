#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/crc32c.hpp>

namespace {

using strata::core::crc32c;

// RFC 3720, section B.4, and the check value of the catalogue of parametrised CRC algorithms.
TEST(Crc32c, EqualsThePublishedValues) {
    for (const bool hardware : {true, false}) {
        const auto of = [&](const std::vector<std::byte>& bytes) { return crc32c(bytes, 0, hardware); };
        EXPECT_EQ(of({}), 0U);
        EXPECT_EQ(of(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aaU);
        EXPECT_EQ(of(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43U);
        std::vector<std::byte> rising(32);
        for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<std::byte>(i);
        EXPECT_EQ(of(rising), 0x46dd794eU);
        constexpr std::string_view digits = "123456789";
        EXPECT_EQ(crc32c(std::as_bytes(std::span{digits}), 0, hardware), 0xe3069283U);
    }
}

/// Bytes without a pattern that a wrong lane could hide in.
std::vector<std::byte> some_bytes(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * i + 7 * i + (i >> 8U));
    return bytes;
}

TEST(Crc32c, InstructionAndTableAgreeForEveryLengthAndStart) {
    const auto bytes = some_bytes(5000);  // three runs of three lanes, and more
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        const auto some = std::span{bytes}.first(size);
        ASSERT_EQ(crc32c(some, 0, true), crc32c(some, 0, false)) << size;
    }
    for (std::size_t start = 0; start < 64; ++start) {
        const auto some = std::span{bytes}.subspan(start);
        ASSERT_EQ(crc32c(some, 0, true), crc32c(some, 0, false)) << start;
    }
}

TEST(Crc32c, OfPartsIsThatOfTheWhole) {
    const auto bytes = some_bytes(4000);
    const std::uint32_t whole = crc32c(bytes);
    for (const bool hardware : {true, false})
        for (std::size_t cut = 0; cut <= bytes.size(); cut += 7) {
            const std::uint32_t first = crc32c(std::span{bytes}.first(cut), 0, hardware);
            ASSERT_EQ(crc32c(std::span{bytes}.subspan(cut), first, hardware), whole) << cut;
        }
}

TEST(Crc32c, EverySingleBitChangesIt) {
    auto bytes = some_bytes(3500);
    const std::uint32_t before = crc32c(bytes);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        const auto flip = static_cast<std::byte>(1U << bit % 8);
        bytes[bit / 8] ^= flip;
        ASSERT_NE(crc32c(bytes), before) << bit;
        bytes[bit / 8] ^= flip;
    }
}

}  // namespace
