#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/crc32c.hpp>

namespace {

using strata::storage::crc32c;

// RFC 3720, section B.4, and the check value of the catalogue of parametrised CRC algorithms.
TEST(Crc32c, EqualsThePublishedValues) {
    for (const bool hardware : {true, false}) {
        const auto of = [&](const std::vector<std::byte>& bytes) { return crc32c(bytes, hardware); };
        EXPECT_EQ(of({}), 0U);
        EXPECT_EQ(of(std::vector<std::byte>(32, std::byte{0})), 0x8a9136aaU);
        EXPECT_EQ(of(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43U);
        std::vector<std::byte> rising(32);
        for (std::size_t i = 0; i < rising.size(); ++i) rising[i] = static_cast<std::byte>(i);
        EXPECT_EQ(of(rising), 0x46dd794eU);
        constexpr std::string_view digits = "123456789";
        EXPECT_EQ(crc32c(std::as_bytes(std::span{digits}), hardware), 0xe3069283U);
    }
}

TEST(Crc32c, InstructionAndTableAgreeForEveryLength) {
    std::vector<std::byte> bytes(1000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i + 7 * i);
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        const auto some = std::span{bytes}.first(size);
        ASSERT_EQ(crc32c(some, true), crc32c(some, false)) << size;
    }
}

}  // namespace
