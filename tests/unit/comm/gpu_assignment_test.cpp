// GPUs for ranks under launchers that show all of a host's GPUs, one each, or something in between.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/gpu_assignment.hpp>
#include <strata/core/error.hpp>

namespace {

using strata::Errc;
using strata::Error;
using strata::comm::gpu_assignment;
using strata::comm::RankGpus;

using Ranks = std::vector<RankGpus>;
using Chosen = std::vector<int>;

/// What no_gpu says of these ranks; a test that fails when they all find one.
std::string refusal(const Ranks& ranks) {
    try {
        (void)gpu_assignment(ranks);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::no_gpu);
        return error.problem();
    }
    ADD_FAILURE() << "every rank has a GPU";
    return {};
}

TEST(GpuAssignment, RanksThatSeeTheSameListTakeItInTurn) {
    const std::vector<std::string> all{"17", "65", "ca"};
    EXPECT_EQ(gpu_assignment(Ranks{{"a", all}, {"a", all}, {"a", all}}), (Chosen{0, 1, 2}));
    EXPECT_EQ(gpu_assignment(Ranks{{"a", all}}), Chosen{0});
    EXPECT_EQ(gpu_assignment(Ranks{}), Chosen{});
}

TEST(GpuAssignment, HostsDoNotShareGpusThoughTheirIdsAreEqual) {
    const std::vector<std::string> all{"17", "65"};
    EXPECT_EQ(gpu_assignment(Ranks{{"a", all}, {"b", all}, {"a", all}, {"b", all}}), (Chosen{0, 0, 1, 1}));
    EXPECT_EQ(gpu_assignment(Ranks{{"a", all}, {"a", all}, {"b", all}, {"b", all}}), (Chosen{0, 1, 0, 1}));
    // A host and an id are two words: "a" with "b17" is not "ab" with "17".
    EXPECT_EQ(gpu_assignment(Ranks{{"a", {"b17"}}, {"ab", {"17"}}}), (Chosen{0, 0}));
}

TEST(GpuAssignment, ARankThatSeesOneGpuTakesIt) {
    EXPECT_EQ(gpu_assignment(Ranks{{"a", {"17"}}, {"a", {"65"}}, {"b", {"17"}}, {"a", {"ca"}}}), (Chosen{0, 0, 0, 0}));
}

TEST(GpuAssignment, WhereListsOverlapARankTakesTheFirstThatNobodyHas) {
    EXPECT_EQ(gpu_assignment(Ranks{{"a", {"0", "1"}}, {"a", {"0", "1", "2"}}, {"a", {"1", "2", "3"}}}),
              (Chosen{0, 1, 1}));
    EXPECT_EQ(gpu_assignment(Ranks{{"a", {"1", "0"}}, {"a", {"0", "1"}}}), (Chosen{0, 0}));
}

TEST(GpuAssignment, WhatARankWasToldComesBeforeWhatOthersChoose) {
    const std::vector<std::string> all{"17", "65", "ca"};
    EXPECT_EQ(gpu_assignment(Ranks{{"a", all, 2}, {"a", all, 1}, {"a", all, 0}}), (Chosen{2, 1, 0}));
    EXPECT_EQ(gpu_assignment(Ranks{{"a", all}, {"a", all}, {"a", all, 0}}), (Chosen{1, 2, 0}));
    EXPECT_EQ(gpu_assignment(Ranks{{"a", all, 1}, {"b", all, 1}}), (Chosen{1, 1}));
    EXPECT_EQ(gpu_assignment(Ranks{{"a", {"17"}, 0}, {"a", {"65"}, 0}}), (Chosen{0, 0}));
    EXPECT_EQ(gpu_assignment(Ranks{{"a", all, 2}}), Chosen{2});
}

TEST(GpuAssignment, ARankWithoutAGpuIsToldWhoHasThem) {
    EXPECT_EQ(refusal({{"a", {"17"}}, {"b", {"17", "65"}}, {"b", {"17", "65"}}, {"b", {"17", "65"}}}),
              "rank 3 on b finds no free GPU; it sees GPU 0 (17, taken by rank 1), GPU 1 (65, taken by rank 2)");
    EXPECT_EQ(refusal({{"a", {"17"}}, {"a", {"17"}}}),
              "rank 1 on a finds no free GPU; it sees GPU 0 (17, taken by rank 0)");
    EXPECT_EQ(refusal({{"a", {"17"}}, {"a", {"17"}, 0}}),
              "rank 0 on a finds no free GPU; it sees GPU 0 (17, taken by rank 1)");
}

TEST(GpuAssignment, ARankThatSeesNoneSaysWhatItsDriverSaid) {
    EXPECT_EQ(refusal({{"a", {"17"}}, {"a", {}, 0, "no driver"}, {"b", {}, -1, "too old"}}),
              "rank 1 on a finds no GPU: no driver");
    EXPECT_EQ(refusal({{"a", {"17"}, 1}, {"b", {}, -1, "too old"}}), "rank 1 on b finds no GPU: too old");
}

TEST(GpuAssignment, TwoRanksOfAHostCannotBeToldOneGpu) {
    EXPECT_EQ(refusal({{"a", {"17", "65"}, 1}, {"a", {"65", "17"}, 0}}),
              "rank 1 on a cannot take GPU 0 as NcclOptions::device says; it sees GPU 0 (65, taken by rank 0), "
              "GPU 1 (17)");
}

TEST(GpuAssignment, ARankCannotBeToldAGpuThatItDoesNotSee) {
    EXPECT_EQ(refusal({{"a", {"17"}}, {"a", {"65", "ca"}, 2}}),
              "rank 1 on a cannot take GPU 2 as NcclOptions::device says; it sees GPU 0 (65), GPU 1 (ca)");
}

TEST(GpuAssignment, ARanksWordsSurviveTheGather) {
    for (const RankGpus& gpus :
         Ranks{{"node7", {"0000:17:00.0", "0000:65:00.0"}, 1}, {"node7", {"", "x"}}, {"", {}, -1, "no driver"}}) {
        EXPECT_EQ(RankGpus::from_text(gpus.text()), gpus);
    }
}

}  // namespace
