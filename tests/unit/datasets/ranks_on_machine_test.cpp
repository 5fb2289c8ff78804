#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/datasets/ranks_on_machine.hpp>

namespace {

using namespace strata::datasets;

TEST(RanksOnMachine, AreThoseThatNameTheSameOne) {
    const std::vector<std::string> machines{"a", "b", "a", "c", "a", "b"};
    const std::vector<int> before{0, 0, 1, 0, 2, 1};
    const std::vector<int> count{3, 2, 3, 1, 3, 2};
    for (int rank = 0; rank < 6; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        const RanksOnMachine one = ranks_on_machine(machines, rank);
        EXPECT_EQ(one.before, before[at]) << rank;
        EXPECT_EQ(one.count, count[at]) << rank;
        EXPECT_EQ(one.is_first(), before[at] == 0) << rank;
    }
    strata::comm::SelfComm self;
    EXPECT_EQ(ranks_on_machine(self).count, 1);
    EXPECT_TRUE(ranks_on_machine(self).is_first());
}

TEST(RanksOnMachine, ShareAllCoresAndNoneGoesWithout) {
    for (const int cores : {1, 2, 3, 8, 61, 64})
        for (const int count : {1, 2, 3, 5, 8}) {
            int given = 0;
            for (int before = 0; before < count; ++before) {
                const int share = RanksOnMachine{before, count}.share_of(cores);
                EXPECT_GE(share, 1);
                EXPECT_LE(share, cores / count + 1);
                given += share;
            }
            EXPECT_EQ(given, std::max(cores, count)) << cores << " cores, " << count << " ranks";
        }
}

}  // namespace
