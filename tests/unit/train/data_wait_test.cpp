#include <string>

#include <gtest/gtest.h>

#include <strata/train/data_wait.hpp>

namespace {

using strata::train::DataWait;
using strata::train::waiting_text;

/// How often so many such steps have it said.
int lines(DataWait& wait, int steps, double waited, double seconds) {
    int said = 0;
    for (int i = 0; i < steps; ++i) said += wait.add(waited, seconds) ? 1 : 0;
    return said;
}

TEST(DataWait, AFifthOfTheTimeIsSaidOnce) {
    DataWait wait;
    EXPECT_EQ(lines(wait, 1000, 0.199, 1), 0);
    DataWait other;
    EXPECT_EQ(lines(other, 1000, 0.201, 1), 1);
}

TEST(DataWait, TheFirstStepsSayNothing) {
    DataWait wait;
    for (int i = 1; i < DataWait::least_steps; ++i) EXPECT_FALSE(wait.add(9, 10)) << i;
    const auto share = wait.add(9, 10);
    ASSERT_TRUE(share);
    EXPECT_NEAR(*share, 0.9, 1e-9);
}

TEST(DataWait, OneLongWaitAmongManyStepsIsNoBottleneck) {
    DataWait wait;
    (void)lines(wait, 100, 0, 1);
    EXPECT_FALSE(wait.add(2, 3));
    EXPECT_EQ(lines(wait, 100, 0, 1), 0);
}

TEST(DataWait, ItIsSaidAgainWhenItHadBecomeBetter) {
    DataWait wait;
    EXPECT_EQ(lines(wait, 100, 0.5, 1), 1);
    EXPECT_EQ(lines(wait, 100, 0.15, 1), 0);
    EXPECT_EQ(lines(wait, 100, 0.5, 1), 0) << "it was not below a tenth";
    EXPECT_EQ(lines(wait, 100, 0, 1), 0);
    EXPECT_EQ(lines(wait, 100, 0.5, 1), 1);
}

TEST(DataWait, StepsWithoutTimeSayNothing) {
    DataWait wait;
    EXPECT_EQ(lines(wait, 100, 0, 0), 0);
}

TEST(DataWait, TheLineNamesTheShareAndWhatTakesLongest) {
    EXPECT_EQ(waiting_text(0.314, "decoding"),
              "training waits for its batches 31 % of the time: decoding takes most of making them");
    EXPECT_EQ(waiting_text(0.2, ""), "training waits for its batches 20 % of the time");
}

}  // namespace
