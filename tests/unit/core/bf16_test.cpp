// tests/unit/core/bf16_test.cpp - the two conversions of bf16, over every value it has.

#include <strata/core/bf16.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace strata {
namespace {

constexpr std::uint16_t largest = 0x7f7f;  ///< bits of the largest finite value

bf16 of_bits(std::uint32_t bits) { return bf16{static_cast<std::uint16_t>(bits)}; }

TEST(Bf16, EveryNumberComesBackUnchanged) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
        const float value = to_float(of_bits(bits));
        if (std::isnan(value)) continue;
        ASSERT_EQ(to_bf16(value).bits, bits);
    }
}

TEST(Bf16, EveryNanBecomesTheOneQuietNan) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
        const float value = to_float(of_bits(bits));
        if (!std::isnan(value)) continue;
        ASSERT_EQ(to_bf16(value).bits, 0x7fc0) << bits;
    }
    EXPECT_EQ(to_bf16(std::bit_cast<float>(0x7f800001U)).bits, 0x7fc0) << "payload in the lower half only";
    EXPECT_EQ(to_bf16(std::bit_cast<float>(0xffffffffU)).bits, 0x7fc0) << "rounding up would wrap to zero";
}

// Between two neighbours, by distances in double: nearer one, and of two as near the even one.
TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
    for (std::uint32_t bits = 0; bits < largest; ++bits) {
        const float low = to_float(of_bits(bits));
        const float high = to_float(of_bits(bits + 1));
        const float middle = std::bit_cast<float>((bits << 16) + 0x8000U);
        ASSERT_EQ(static_cast<double>(middle) - low, static_cast<double>(high) - middle);
        const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
        ASSERT_EQ(to_bf16(middle).bits, even);
        ASSERT_EQ(to_bf16(std::nextafter(middle, low)).bits, bits);
        ASSERT_EQ(to_bf16(std::nextafter(middle, high)).bits, bits + 1);
        ASSERT_EQ(to_bf16(-middle).bits, even | 0x8000U) << "the same on the other side of zero";
    }
}

TEST(Bf16, BeyondTheLargestNumberIsInfinity) {
    const float tie = std::bit_cast<float>((std::uint32_t{largest} << 16) + 0x8000U);
    EXPECT_EQ(to_bf16(std::nextafter(tie, 0.0F)).bits, largest);
    EXPECT_EQ(to_bf16(tie).bits, 0x7f80);
    EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7f80);
    EXPECT_EQ(to_bf16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

TEST(Bf16, ComparesBitsSoThatZerosDifferAndNansAreEqual) {
    EXPECT_NE(to_bf16(0.0F), to_bf16(-0.0F));
    EXPECT_EQ(to_bf16(std::nanf("")), to_bf16(-std::nanf("")));
}

}  // namespace
}  // namespace strata
