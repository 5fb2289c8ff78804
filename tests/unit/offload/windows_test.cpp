// Windows and buffers by arithmetic.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <strata/offload/windows.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::offload::BufferPlan;
using strata::offload::cut_windows;
using strata::offload::plan_buffers;
using strata::offload::WindowRun;
using strata_test::thrown_by;

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(Windows, CoverEveryShareOnceAndNeverCrossABucket) {
    const std::vector<std::int64_t> shares{10, 0, 4, 9};
    const std::vector<WindowRun> expected{{0, 0, 4}, {0, 4, 4}, {0, 8, 2}, {2, 0, 4}, {3, 0, 4}, {3, 4, 4}, {3, 8, 1}};
    EXPECT_EQ(cut_windows(shares, 4), expected);
    EXPECT_TRUE(cut_windows({}, 4).empty());
}

TEST(Windows, ABudgetThatIsSetIsKept) {
    EXPECT_EQ(plan_buffers(3 * mib, 100, 10 * mib, 0), (BufferPlan{3 * mib, 3}));
    EXPECT_EQ(plan_buffers(3 * mib, 2, 100 * mib, 0), (BufferPlan{3 * mib, 2}));
    EXPECT_EQ(plan_buffers(3 * mib, 1, 3 * mib, 0), (BufferPlan{3 * mib, 1}));
    const auto error = thrown_by([] { (void)plan_buffers(3 * mib, 100, 5 * mib, 0); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("Fix: set it to 6291456 bytes or more")) << error.message;
}

TEST(Windows, WithoutABudgetTheFreeMemoryDecides) {
    EXPECT_EQ(plan_buffers(16 * mib, 100, 0, 8192 * mib), (BufferPlan{16 * mib, 16}));
    EXPECT_EQ(plan_buffers(4 * mib, 100, 0, 24'576 * mib), (BufferPlan{4 * mib, 48}));
    EXPECT_EQ(plan_buffers(4 * mib, 100, 0, 1'000'000 * mib), (BufferPlan{4 * mib, 64}));
    EXPECT_EQ(plan_buffers(16 * mib, 100, 0, 400 * mib), (BufferPlan{16 * mib, 3}));
    EXPECT_EQ(plan_buffers(16 * mib, 100, 0, 20 * mib), (BufferPlan{16 * mib, 2}));  // HostArena says what is missing
}

}  // namespace
