// Which instruction sets a CPU must have for each level, and what runs at them.

#include <cstdint>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/simd.hpp>

namespace {

using strata::core::cpu_features;
using strata::core::level_for;
using strata::core::run_at;
using strata::core::run_in_lanes;
using strata::core::simd_level;
using strata::core::SimdLevel;

TEST(Simd, ALevelIsChosenByItsInstructionSets) {
    EXPECT_EQ(level_for({}), SimdLevel::baseline);
    EXPECT_EQ(level_for({.avx2 = true, .fma = true}), SimdLevel::avx2);
    EXPECT_EQ(level_for({.avx2 = true, .fma = true, .avx512 = true}), SimdLevel::avx512);
}

TEST(Simd, WithoutFusedMultiplyAddThereIsOnlyTheBaseline) {
    EXPECT_EQ(level_for({.avx2 = true}), SimdLevel::baseline);
    EXPECT_EQ(level_for({.avx2 = true, .avx512 = true}), SimdLevel::baseline);
}

TEST(Simd, TheLevelOfThisMachineIncludesFusedMultiplyAdd) {
#ifdef __x86_64__
    if (simd_level() != SimdLevel::baseline) {
        EXPECT_TRUE(__builtin_cpu_supports("fma"));
    }
    EXPECT_EQ(cpu_features().crc32, __builtin_cpu_supports("sse4.2") != 0);
#else
    EXPECT_EQ(simd_level(), SimdLevel::baseline);
#endif
}

/// y = a x + y, which a fused multiply-add would round once instead of twice.
struct Axpy {
    const float* x;
    float* y;
    std::int64_t numel;
    [[gnu::always_inline]] void operator()() const {
        for (std::int64_t i = 0; i < numel; ++i) y[i] = 0.1F * x[i] + y[i];
    }
};

TEST(Simd, ALoopHasTheSameBitsAtEveryLevel) {
    std::vector<float> x(1003);
    std::vector<float> expected(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0F / static_cast<float>(i + 3);
    std::vector<float> fused(x.size());
    bool would_show = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const volatile float product = 0.1F * x[i];  // rounded by itself
        expected[i] = product + x[i] * x[i];
        would_show = would_show || __builtin_fmaf(0.1F, x[i], x[i] * x[i]) != expected[i];
    }
    ASSERT_TRUE(would_show);
    for (int level = 0; level <= static_cast<int>(simd_level()); ++level) {
        std::vector<float> y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
        run_at(static_cast<SimdLevel>(level), Axpy{x.data(), y.data(), static_cast<std::int64_t>(x.size())});
        EXPECT_EQ(y, expected) << level;
    }
}

TEST(Simd, LanesFillARegisterOfTheLevel) {
    for (int level = 0; level <= static_cast<int>(simd_level()); ++level) {
        int lanes = 0;
        run_in_lanes(
            static_cast<SimdLevel>(level), [&](auto count)
                                               __attribute__((always_inline)) { lanes = decltype(count)::value; });
        EXPECT_EQ(lanes, 4 << level);
    }
}

TEST(Simd, TheInstructionOfCrc32cRunsWhereTheCpuHasIt) {
    std::uint64_t state = 0;
    const bool ran = strata::core::run_with_crc32([&]() __attribute__((always_inline)) {
        state = strata::core::crc32_step(0xffffffffU, 0);
    });
    EXPECT_EQ(ran, cpu_features().crc32);
    if (ran) {
        EXPECT_EQ(~static_cast<std::uint32_t>(state), 0x8c28b28aU);
    }  // CRC32C of eight zero bytes
}

}  // namespace
