// The first signal asks, the second ends the process.

#include <csignal>

#include <gtest/gtest.h>

#include <strata/train/stop_signal.hpp>

namespace {

using strata::train::StopSignal;

TEST(StopSignal, EachOfTheSignalsAsksToStop) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
        const StopSignal stop;
        EXPECT_FALSE(stop.requested());
        std::raise(signal);
        EXPECT_TRUE(stop.requested());
    }
}

TEST(StopSignal, ASecondSignalEndsTheProcessAtOnce) {
    EXPECT_EXIT(
        {
            const StopSignal stop;
            std::raise(SIGTERM);
            std::raise(SIGINT);
        },
        testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(StopSignal, TheFormerHandlerComesBack) {
    EXPECT_EXIT(
        {
            {
                const StopSignal outer;
                const StopSignal inner;
            }
            std::raise(SIGTERM);
        },
        testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
