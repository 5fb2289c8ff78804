// The gradient norm's sums and the clipping factor.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/clip.hpp>

namespace {

using strata::bf16;
using strata::fp16;
using strata::to_fp16;
using strata::core::simd_level;
using strata::core::SimdLevel;
using strata::optim::clip_by_value;
using strata::optim::clip_coefficient;
using strata::optim::overflowed;
using strata::optim::sum_of_squares;

std::vector<float> normal_values(std::size_t n) {
    std::mt19937 random{static_cast<unsigned>(n)};
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& value : values) value = normal(random);
    return values;
}

TEST(Clip, SumOfSquaresIsRightAtEveryLengthAndTheSameBitsAtEveryLevel) {
    std::vector<std::size_t> lengths{65536, 65537, 200'003};
    for (std::size_t n = 0; n <= 67; ++n) lengths.push_back(n);
    for (const std::size_t n : lengths) {
        const auto values = normal_values(n);
        long double expected = 0;
        for (const float value : values) expected += static_cast<long double>(value) * static_cast<long double>(value);
        const double sum = sum_of_squares(std::span<const float>{values}, SimdLevel::baseline);
        EXPECT_NEAR(sum, static_cast<double>(expected), 1e-13 * static_cast<double>(expected));
        for (auto level = SimdLevel::avx2; level <= simd_level();
             level = static_cast<SimdLevel>(static_cast<int>(level) + 1)) {
            EXPECT_EQ(sum_of_squares(std::span<const float>{values}, level), sum) << n;
        }
    }
}

TEST(Clip, SumOfSquaresReadsBf16) {
    std::vector<bf16> values(35, strata::to_bf16(1.5F));
    EXPECT_EQ(sum_of_squares(std::span<const bf16>{values}), 35 * 2.25);
}

TEST(Clip, SumOfSquaresReadsFp16AndSeesItsOverflow) {
    std::vector<fp16> values(35, to_fp16(-1.5F));
    EXPECT_EQ(sum_of_squares(std::span<const fp16>{values}), 35 * 2.25);
    for (const std::size_t at : {0UL, 16UL, 34UL}) {
        for (const float bad : {70000.0F, -std::numeric_limits<float>::infinity(), std::nanf("")}) {
            auto broken = values;
            broken[at] = to_fp16(bad);
            EXPECT_TRUE(overflowed(sum_of_squares(std::span<const fp16>{broken})));
        }
    }
    values[3] = to_fp16(65504.0F);
    EXPECT_FALSE(overflowed(sum_of_squares(std::span<const fp16>{values})));
}

TEST(Clip, ByValueClampsBothSidesAtEveryLevelAndKeepsNan) {
    for (int level = 0; level <= static_cast<int>(simd_level()); ++level) {
        for (std::size_t n = 0; n <= 67; ++n) {
            auto values = normal_values(n);
            const auto before = values;
            clip_by_value(std::span{values}, 0.5F, static_cast<SimdLevel>(level));
            for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(values[i], std::clamp(before[i], -0.5F, 0.5F));
        }
        std::vector<fp16> half{to_fp16(3.0F), to_fp16(-0.25F), to_fp16(-std::numeric_limits<float>::infinity())};
        clip_by_value(std::span{half}, 1.0F, static_cast<SimdLevel>(level));
        EXPECT_EQ(half, (std::vector<fp16>{to_fp16(1.0F), to_fp16(-0.25F), to_fp16(-1.0F)}));
        std::vector<float> broken{std::nanf("")};
        clip_by_value(std::span{broken}, 1.0F, static_cast<SimdLevel>(level));
        EXPECT_TRUE(std::isnan(broken[0]));
    }
}

TEST(Clip, SumOfSquaresIsFiniteExactlyWhenTheValuesAre) {
    std::vector<float> values(100, std::numeric_limits<float>::max());
    EXPECT_TRUE(std::isfinite(sum_of_squares(std::span<const float>{values})));
    values[99] = std::numeric_limits<float>::infinity();
    EXPECT_FALSE(std::isfinite(sum_of_squares(std::span<const float>{values})));
    values[99] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(sum_of_squares(std::span<const float>{values})));
}

TEST(Clip, CoefficientIsTorchs) {
    EXPECT_EQ(clip_coefficient(4.0, 1.0), 1.0 / (4.0 + 1e-6));
    EXPECT_EQ(clip_coefficient(1.0, 1.0), 1.0 / (1.0 + 1e-6));
    EXPECT_EQ(clip_coefficient(0.3, 1.0), 1.0);
    EXPECT_EQ(clip_coefficient(0.0, 1.0), 1.0);
    EXPECT_EQ(clip_coefficient(1e9, 0.0), 1.0);
}

}  // namespace
