// Which instruction sets a CPU must have for each level.

#include <gtest/gtest.h>

#include <strata/optim/simd.hpp>

namespace {

using strata::optim::level_for;
using strata::optim::SimdLevel;

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
    if (strata::optim::simd_level() != SimdLevel::baseline) { EXPECT_TRUE(__builtin_cpu_supports("fma")); }
#else
    EXPECT_EQ(strata::optim::simd_level(), SimdLevel::baseline);
#endif
}

}  // namespace
