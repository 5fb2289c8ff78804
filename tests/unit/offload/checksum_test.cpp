// CRC32C: against the published check value, and the instruction against the table.

#include <cstddef>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/offload/checksum.hpp>

namespace {

using strata::offload::checksum;
using strata::offload::Coverage;

TEST(Checksum, HasThePublishedCheckValue) {
    const std::string_view digits = "123456789";  // less than a line: all in the last part
    EXPECT_EQ(checksum(std::as_bytes(std::span{digits}), Coverage::every_byte)[3], 0xe3069283U);
}

TEST(Checksum, TheInstructionAndTheTableAgree) {
    std::mt19937 random{1};
    for (const std::size_t size : {0UL, 1UL, 63UL, 64UL, 65UL, 4096UL, 100'003UL}) {
        std::vector<std::byte> bytes(size);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        for (const Coverage coverage : {Coverage::sectors, Coverage::every_byte}) {
            EXPECT_EQ(checksum(bytes, coverage, true), checksum(bytes, coverage, false)) << size;
        }
    }
}

TEST(Checksum, ChangesWithEveryBitWhereverItIs) {
    std::vector<std::byte> bytes(1001);
    const auto before = checksum(bytes, Coverage::every_byte);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] ^= std::byte{0x10};
        EXPECT_NE(checksum(bytes, Coverage::every_byte), before) << i;
        bytes[i] ^= std::byte{0x10};
    }
}

TEST(Checksum, OfSectorsChangesWithEverySector) {
    std::vector<std::byte> bytes(10 * 512 + 7);
    const auto before = checksum(bytes, Coverage::sectors);
    for (std::size_t i = 0; i < bytes.size(); i += 512) {
        bytes[i] ^= std::byte{0x10};
        EXPECT_NE(checksum(bytes, Coverage::sectors), before) << i;
        bytes[i] ^= std::byte{0x10};
    }
    bytes[100] ^= std::byte{1};  // what it does not look at, and why it is cheap
    EXPECT_EQ(checksum(bytes, Coverage::sectors), before);
}

}  // namespace
