#include <random>

#include <gtest/gtest.h>

#include <strata/storage/gzip.hpp>

#include "../../support/address_space.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::storage::gzip_compress;
using strata::storage::gzip_decompress;
using strata_test::thrown_by;
using Bytes = std::vector<std::byte>;

Bytes noise(std::size_t size) {
    std::mt19937 random{7};
    Bytes bytes(size);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 0xFF);
    return bytes;
}

TEST(Gzip, RoundTripsEmptyRepetitiveAndRandomBytes) {
    for (const Bytes& plain : {Bytes{}, Bytes(1), Bytes(1'000'000), noise(1), noise(300'000)})
        EXPECT_EQ(gzip_decompress(gzip_compress(plain)), plain) << plain.size();
}

TEST(Gzip, EqualInputGivesEqualBytesWithTheGzipSignature) {
    const Bytes plain = noise(1000);
    const Bytes packed = gzip_compress(plain);
    EXPECT_EQ(packed, gzip_compress(plain));
    EXPECT_EQ(std::to_integer<int>(packed.at(0)), 0x1F);
    EXPECT_EQ(std::to_integer<int>(packed.at(1)), 0x8B);
}

TEST(Gzip, ReadsMembersInSequence) {
    Bytes packed = gzip_compress(noise(10));
    const Bytes second = gzip_compress(noise(5000));
    packed.insert(packed.end(), second.begin(), second.end());
    EXPECT_EQ(gzip_decompress(packed).size(), 5010U);
}

TEST(Gzip, MembersBeforeTheLastMayBeOfAnySize) {
    // Only the last one's size is at the end of the stream.
    Bytes plain = noise(3'000'000);
    Bytes packed = gzip_compress(plain);
    for (const Bytes& more : {Bytes(500'000), Bytes{}, noise(7)}) {
        const Bytes member = gzip_compress(more);
        packed.insert(packed.end(), member.begin(), member.end());
        plain.insert(plain.end(), more.begin(), more.end());
    }
    EXPECT_EQ(gzip_decompress(packed), plain);
    EXPECT_EQ(gzip_decompress(packed, plain.size()), plain);
    EXPECT_EQ(thrown_by([&] { (void)gzip_decompress(packed, plain.size() - 1); }).code, Errc::corrupt_gzip);
}

TEST(Gzip, AStatedSizeIsCheckedAndTakesLittleMemory) {
    const Bytes packed = gzip_compress(noise(200));
    for (const unsigned stated : {0U, 199U, 201U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
        Bytes lie = packed;
        for (std::size_t i = 0; i < 4; ++i) lie[lie.size() - 4 + i] = static_cast<std::byte>(stated >> (8 * i));
        const strata_test::AddressSpaceLimit limit{64 << 20};
        EXPECT_EQ(thrown_by([&] { (void)gzip_decompress(lie); }).code, Errc::corrupt_gzip) << stated;
    }
}

TEST(Gzip, EveryTruncationIsRefused) {
    const Bytes packed = gzip_compress(noise(200));
    for (std::size_t size = 0; size < packed.size(); ++size)
        EXPECT_EQ(thrown_by([&] { (void)gzip_decompress(std::span{packed}.first(size)); }).code, Errc::corrupt_gzip);
}

TEST(Gzip, AFlippedBitNeverGivesOtherBytes) {
    const Bytes plain = noise(200);
    const Bytes packed = gzip_compress(plain);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < packed.size(); ++i) {
        Bytes damaged = packed;
        damaged[i] ^= std::byte{0x10};
        try {
            EXPECT_EQ(gzip_decompress(damaged), plain) << i;  // a bit that means nothing: time stamp, padding
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), Errc::corrupt_gzip);
            ++refused;
        }
    }
    EXPECT_GE(refused, plain.size());
}

TEST(Gzip, TrailingBytesAreRefused) {
    Bytes packed = gzip_compress(noise(200));
    packed.push_back(std::byte{1});
    EXPECT_EQ(thrown_by([&] { (void)gzip_decompress(packed); }).code, Errc::corrupt_gzip);
}

TEST(Gzip, ASmallFileCannotGrowBeyondTheLimit) {
    const Bytes bomb = gzip_compress(Bytes(10'000'000));
    EXPECT_LT(bomb.size(), 20'000U);
    EXPECT_EQ(thrown_by([&] { (void)gzip_decompress(bomb, 1'000'000); }).code, Errc::corrupt_gzip);
    EXPECT_EQ(gzip_decompress(bomb, 10'000'000).size(), 10'000'000U);
    EXPECT_EQ(thrown_by([&] { (void)gzip_decompress(bomb, 9'999'999); }).code, Errc::corrupt_gzip);
}

}  // namespace
