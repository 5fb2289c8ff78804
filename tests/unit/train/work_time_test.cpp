// Own work by a clock that the test moves on.

#include <strata/train/work_time.hpp>

#include <stdexcept>

#include <gtest/gtest.h>

#include <strata/comm/wait_listener.hpp>

namespace {

using strata::comm::InCollective;

struct WorkTime : ::testing::Test {
    double now = 100;
    strata::train::WorkTime work{[this] { return now; }};
    void wait(double seconds) {
        const InCollective in;
        now += seconds;
    }
};

TEST_F(WorkTime, WhatIsMeasuredCountsWithoutItsWaits) {
    now += 50;
    work.measure([&] {
        now += 1;
        wait(7);
        now += 2;
    });
    now += 50;
    EXPECT_EQ(work.measure([&] {
        wait(9);
        now += 4;
        return 5;
    }),
              5);
    EXPECT_EQ(work.take(), 1 + 2 + 4);
    EXPECT_EQ(work.take(), 0);
}

TEST_F(WorkTime, ItMayBeTakenInTheMiddle) {
    work.measure([&] {
        now += 3;
        EXPECT_EQ(work.take(), 3);
        now += 4;
        wait(20);
    });
    work.measure([&] { now += 1; });
    EXPECT_EQ(work.take(), 5);
}

TEST_F(WorkTime, WorkThatThrowsHasTakenItsTime) {
    EXPECT_THROW(work.measure([&] {
        now += 3;
        throw std::runtime_error{"no answer"};
    }),
                 std::runtime_error);
    now += 50;
    EXPECT_EQ(work.take(), 3);
    wait(5);
    EXPECT_EQ(work.take(), 0) << "nobody listens behind it";
}

}  // namespace
