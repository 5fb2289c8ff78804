// tests/unit/core/fp16_test.cpp - the two conversions of fp16, over every value it has.

#include <strata/core/fp16.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace strata {
namespace {

fp16 of_bits(std::uint32_t bits) { return fp16{static_cast<std::uint16_t>(bits)}; }

/// The value that the standard gives to bits below infinity's: fraction and exponent by hand.
double by_definition(std::uint32_t bits) {
    const int exponent = static_cast<int>(bits >> 10);
    const auto fraction = static_cast<double>(bits & 0x3ffU);
    return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Fp16, EveryNumberHasItsValueAndComesBackUnchanged) {
    for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
        ASSERT_EQ(static_cast<double>(to_float(of_bits(bits))), by_definition(bits)) << bits;
        ASSERT_EQ(static_cast<double>(to_float(of_bits(bits | 0x8000U))), -by_definition(bits)) << bits;
        ASSERT_EQ(to_fp16(to_float(of_bits(bits))).bits, bits);
        ASSERT_EQ(to_fp16(to_float(of_bits(bits | 0x8000U))).bits, bits | 0x8000U);
    }
    EXPECT_TRUE(std::signbit(to_float(of_bits(0x8000))));
}

TEST(Fp16, InfinityAndNanStayWhatTheyAre) {
    EXPECT_EQ(to_float(of_bits(0x7c00)), std::numeric_limits<float>::infinity());
    EXPECT_EQ(to_float(of_bits(0xfc00)), -std::numeric_limits<float>::infinity());
    EXPECT_EQ(to_fp16(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
    for (std::uint32_t bits = 0x7c01; bits <= 0x7fff; ++bits) {
        ASSERT_TRUE(std::isnan(to_float(of_bits(bits)))) << bits;
        ASSERT_EQ(to_fp16(to_float(of_bits(bits))).bits, 0x7e00) << bits;
    }
    EXPECT_EQ(to_fp16(std::bit_cast<float>(0xff800001U)).bits, 0x7e00) << "payload in the lower half only";
}

// Between two neighbours, the subnormal ones too: the nearer one, and of two as near the even one.
TEST(Fp16, RoundsToTheNearestAndTiesToEven) {
    for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
        const double low = by_definition(bits);
        const double high = by_definition(bits + 1);
        const auto middle = static_cast<float>((low + high) / 2);
        ASSERT_EQ(static_cast<double>(middle) - low, high - static_cast<double>(middle));
        const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
        ASSERT_EQ(to_fp16(middle).bits, even) << bits;
        ASSERT_EQ(to_fp16(std::nextafter(middle, 0.0F)).bits, bits) << bits;
        ASSERT_EQ(to_fp16(std::nextafter(middle, 1e9F)).bits, bits + 1) << bits;
        ASSERT_EQ(to_fp16(-middle).bits, even | 0x8000U) << bits;
    }
}

TEST(Fp16, BeyondTheLargestNumberIsInfinity) {
    EXPECT_EQ(to_fp16(65504.0F).bits, 0x7bff);
    EXPECT_EQ(to_fp16(std::nextafter(65520.0F, 0.0F)).bits, 0x7bff);
    EXPECT_EQ(to_fp16(65520.0F).bits, 0x7c00);
    EXPECT_EQ(to_fp16(65536.0F).bits, 0x7c00);
    EXPECT_EQ(to_fp16(std::numeric_limits<float>::max()).bits, 0x7c00);
    EXPECT_EQ(to_fp16(std::numeric_limits<float>::denorm_min()).bits, 0);
    EXPECT_EQ(to_fp16(-std::numeric_limits<float>::min()).bits, 0x8000);
}

}  // namespace
}  // namespace strata
