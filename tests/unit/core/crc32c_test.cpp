#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/crc32c.hpp>

namespace {

using strata::core::crc32c;
using strata::core::crc32c_of_four;

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

TEST(Crc32c, OfFourPartsKeepsItsValues) {  // windows on disk are sealed with them
    const auto bytes = some_bytes(1000);
    for (const bool hardware : {true, false}) {
        EXPECT_EQ(crc32c_of_four(bytes, 64, hardware),
                  (std::array{0x036741c3U, 0x28061983U, 0x61f2cdd8U, 0xb80c0db4U}));
        EXPECT_EQ(crc32c_of_four(bytes, 512, hardware),
                  (std::array{0x730d8aaaU, 0x0f0eba7eU, 0xeb839b95U, 0x25fb6a2aU}));
    }
}

/// Part i by its definition: words i and i + 4 of every line, and the rest in the last part.
TEST(Crc32c, OfFourPartsIsThatOfEachPart) {
    for (const std::size_t size : {0UL, 63UL, 64UL, 200UL, 1000UL}) {
        const auto bytes = some_bytes(size);
        std::array<std::vector<std::byte>, 4> parts;
        const std::size_t whole = size / 64 * 64;
        for (std::size_t i = 0; i < size; ++i) parts[i < whole ? i / 8 % 4 : 3].push_back(bytes[i]);
        const auto sums = crc32c_of_four(bytes);
        for (std::size_t part = 0; part < 4; ++part)
            EXPECT_EQ(sums[part], crc32c(parts[part])) << size << ", part " << part;
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
