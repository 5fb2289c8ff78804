// The conversions of kept numbers, by element type and by the run; those of each format are in bf16_test and fp16_test.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/elements.hpp>

namespace {

using strata::bf16;
using strata::fp16;
using strata::to_element;
using strata::to_float;
using strata::core::convert_elements;

TEST(Elements, AreRoundedToNearestInTheirFormat) {
    const float third = 1.0F / 3.0F;
    EXPECT_EQ(to_element<float>(third), third);
    EXPECT_EQ(to_element<double>(third), static_cast<double>(third));
    EXPECT_EQ(to_element<bf16>(third), bf16{0x3eab});
    EXPECT_EQ(to_element<fp16>(third), fp16{0x3555});
    EXPECT_EQ(to_element<bf16>(std::numeric_limits<float>::quiet_NaN()), bf16{0x7fc0});
    EXPECT_EQ(to_element<fp16>(-1e30F), fp16{0xfc00});
}

/// Every number of 16 bits that is one, through fp32 and back.
template <class Element>
void expect_every_number_comes_back() {
    for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
        const Element value{static_cast<std::uint16_t>(bits)};
        const float wide = to_float(value);
        if (wide == wide) {
            ASSERT_EQ(to_element<Element>(wide), value) << bits;
        }
    }
}
TEST(Elements, OfSixteenBitsComeBackFromFloats) {
    expect_every_number_comes_back<bf16>();
    expect_every_number_comes_back<fp16>();
}

TEST(Elements, ARunIsConvertedAsItsElementsAre) {
    std::vector<float> values(1037);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<float>(i) - 500.0F) * 1.37e-3F;
    std::vector<bf16> narrow(values.size());
    std::vector<fp16> other(values.size());
    std::vector<float> wide(values.size());
    convert_elements(std::span<const float>{values}, std::span{narrow});
    convert_elements(std::span<const bf16>{narrow}, std::span{other});
    convert_elements(std::span<const fp16>{other}, std::span{wide});
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(narrow[i], strata::to_bf16(values[i])) << i;
        ASSERT_EQ(other[i], strata::to_fp16(to_float(narrow[i]))) << i;
        ASSERT_EQ(wide[i], to_float(other[i])) << i;
    }
}

}  // namespace
