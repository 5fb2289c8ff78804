// One rank on its own: collectives are copies.

#include <array>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>

namespace {

using strata::bf16;
using strata::to_bf16;
using strata::comm::SelfComm;

TEST(SelfComm, IsRankZeroOfOne) {
    const SelfComm comm;
    EXPECT_EQ(comm.rank(), 0);
    EXPECT_EQ(comm.world(), 1);
}

TEST(SelfComm, GathersAndReducesItsOwnValues) {
    const SelfComm comm;
    const std::array<float, 3> mine{1.0F, -2.5F, 3.0F};
    std::array<float, 3> all{};
    comm.all_gather(std::as_bytes(std::span{mine}), std::as_writable_bytes(std::span{all}));
    EXPECT_EQ(all, mine);
    std::array<float, 3> share{};
    comm.reduce_scatter(std::span<const float>{mine}, std::span<float>{share});
    EXPECT_EQ(share, mine);
    EXPECT_EQ(comm.all_gather_varied("abc"), std::vector<std::string>{"abc"});
    std::array<double, 1> sum{0.1};
    comm.all_reduce_sum(sum);
    EXPECT_EQ(sum[0], 0.1);
}

TEST(SelfComm, WidensBf16) {
    const SelfComm comm;
    const std::array<bf16, 2> all{to_bf16(1.5F), to_bf16(-3.0F)};
    std::array<float, 2> wide{};
    std::array<bf16, 2> same{};
    comm.reduce_scatter(std::span<const bf16>{all}, std::span<float>{wide});
    comm.reduce_scatter(std::span<const bf16>{all}, std::span<bf16>{same});
    EXPECT_EQ(wide, (std::array<float, 2>{1.5F, -3.0F}));
    EXPECT_EQ(same, all);
}

TEST(SelfComm, TakesEmptySpans) {
    const SelfComm comm;
    comm.all_gather({}, {});
    comm.reduce_scatter(std::span<const float>{}, std::span<float>{});
    comm.broadcast({}, 0);
}

TEST(SelfComm, AbortEndsTheProcessWithItsStatus) { EXPECT_EXIT(SelfComm{}.abort(3), testing::ExitedWithCode(3), ""); }

}  // namespace
