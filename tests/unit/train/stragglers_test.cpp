// Ranks are compared by times that are given.

#include <strata/train/stragglers.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace {

using strata::train::RankTimes;
using strata::train::Straggler;
using strata::train::Stragglers;

/// So many such steps; what was said of them.
std::vector<Straggler> after(Stragglers& judge, int steps, const std::vector<RankTimes>& times) {
    std::vector<Straggler> said;
    for (int i = 0; i < steps; ++i)
        for (const Straggler& one : judge.add(times)) said.push_back(one);
    return said;
}

TEST(Stragglers, ARankThatIsSteadilySlowerIsNamedOnceWhenTheWindowIsFull) {
    Stragglers judge{1.3, 50};
    const std::vector<RankTimes> times{{0.5}, {0.52}, {0.8}, {0.51}};
    EXPECT_TRUE(after(judge, 49, times).empty());
    const auto said = after(judge, 1, times);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].rank, 2);
    EXPECT_TRUE(said[0].is_slow);
    EXPECT_EQ(said[0].work, 0.8);
    EXPECT_EQ(said[0].others, 0.51);
    EXPECT_EQ(said[0].steps, 50);
    EXPECT_TRUE(after(judge, 1000, times).empty());
}

TEST(Stragglers, LessThanTheFactorIsNoStraggler) {
    Stragglers judge{1.3, 50};
    EXPECT_TRUE(after(judge, 200, {{0.50}, {0.64}}).empty());
    EXPECT_EQ(after(judge, 200, {{0.50}, {0.66}}).size(), 1U);
}

TEST(Stragglers, MillisecondsAreNone) {
    Stragglers judge{1.3, 10};
    EXPECT_TRUE(after(judge, 100, {{0.001}, {0.0055}}).empty());
    EXPECT_EQ(after(judge, 100, {{0.001}, {0.0065}}).size(), 1U);
}

TEST(Stragglers, SingleSlowStepsAreForgiven) {
    Stragglers judge{1.3, 50};
    std::vector<Straggler> said;
    for (int step = 0; step < 500; ++step)  // two steps of five: rank 0 writes something, say
        for (const Straggler& one : judge.add(std::vector<RankTimes>{{step % 5 < 2 ? 9 : 0.5}, {0.5}, {0.5}}))
            said.push_back(one);
    EXPECT_TRUE(said.empty());
}

TEST(Stragglers, OneThatKeepsUpAgainIsToldAndMayBeNamedAgain) {
    Stragglers judge{1.3, 10};
    EXPECT_EQ(after(judge, 10, {{1.0}, {1.4}}).size(), 1U);
    EXPECT_TRUE(after(judge, 100, {{1.0}, {1.2}}).empty()) << "above half of what made it slow";
    EXPECT_TRUE(after(judge, 100, {{1.0}, {1.4}}).empty()) << "it is named already";
    const auto said = after(judge, 100, {{1.0}, {1.1}});
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].rank, 1);
    EXPECT_FALSE(said[0].is_slow);
    EXPECT_EQ(after(judge, 100, {{1.0}, {1.4}}).size(), 1U);
}

TEST(Stragglers, SeveralAreNamedAndAnotherOneInItsTurn) {
    Stragglers judge{1.3, 10};
    const auto said = after(judge, 10, {{1.0}, {2.0}, {1.0}, {1.0}, {3.0}});
    ASSERT_EQ(said.size(), 2U);
    EXPECT_EQ(said[0].rank, 1);
    EXPECT_EQ(said[1].rank, 4);
    const auto later = after(judge, 10, {{1.0}, {2.0}, {2.0}, {1.0}, {1.0}});
    ASSERT_EQ(later.size(), 2U);
    EXPECT_EQ(later[0].rank, 2);
    EXPECT_TRUE(later[0].is_slow);
    EXPECT_EQ(later[1].rank, 4);
    EXPECT_FALSE(later[1].is_slow);
}

TEST(Stragglers, WaitingForBatchesExplainsWhatIsMostlyThat) {
    Stragglers judge{1.3, 10};
    const auto waits = after(judge, 10, {{1.0, 0.1}, {1.6, 0.5}});
    ASSERT_EQ(waits.size(), 1U);
    EXPECT_EQ(waits[0].data_wait, 0.5);
    EXPECT_EQ(waits[0].others_data_wait, 0.1);
    EXPECT_TRUE(waits[0].waits_for_data());
    Stragglers other{1.3, 10};
    const auto computes = after(other, 10, {{1.0, 0.1}, {1.6, 0.3}});
    ASSERT_EQ(computes.size(), 1U);
    EXPECT_FALSE(computes[0].waits_for_data());
}

TEST(Stragglers, NothingIsComparedWhereThatCannotBe) {
    Stragglers off{1, 5};
    EXPECT_TRUE(after(off, 50, {{1.0}, {9.0}}).empty());
    Stragglers alone{1.3, 5};
    EXPECT_TRUE(after(alone, 50, {{1.0}}).empty());
    Stragglers unmeasured{1.3, 5};
    EXPECT_TRUE(after(unmeasured, 50, {{std::numeric_limits<double>::quiet_NaN()}, {9.0}}).empty());
}

TEST(Stragglers, EqualTimesAreJudgedEquallyOnAllRanks) {
    Stragglers here{1.3, 10}, there{1.3, 10};
    for (int step = 0; step < 200; ++step) {
        const double slow = step / 40 % 2 == 0 ? 2.0 : 1.0;
        const std::vector<RankTimes> times{{1.0}, {slow}, {1.1}};
        EXPECT_EQ(here.add(times).size(), there.add(times).size()) << step;
    }
}

}  // namespace
