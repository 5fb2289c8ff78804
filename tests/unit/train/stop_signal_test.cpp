// The first signal asks, the second ends the process; under a launcher, the wish to stop is noted and may come again.

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST(StopSignal, WhatWasHeldBackIsHeard) {
    sigset_t held;
    sigset_t before;
    sigemptyset(&held);
    sigaddset(&held, SIGUSR1);
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &held, &before), 0);
    std::raise(SIGUSR1);
    {
        const StopSignal stop;
        EXPECT_TRUE(stop.requested());
    }
    sigset_t after;
    ::pthread_sigmask(SIG_SETMASK, &before, &after);
    EXPECT_EQ(sigismember(&after, SIGUSR1), 1) << "the mask is as it was";
}

TEST(StopSignal, AnInnerOneKnowsWhatTheOuterOneHeard) {
    const StopSignal outer;
    std::raise(SIGINT);
    const StopSignal inner;
    EXPECT_TRUE(inner.requested());
}

/// What `strata launch` passes on to a program.
std::array<int, 2> pipe_of_a_launcher() {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_NONBLOCK), 0);
    struct stat status {};
    ::fstat(pipe[1], &status);
    ::setenv("STRATA_STOP_NOTED", (std::to_string(pipe[1]) + ":" + std::to_string(status.st_ino)).c_str(), 1);
    return pipe;
}

TEST(StopSignal, ALauncherIsToldAndMayRepeatItsWish) {
    EXPECT_EXIT(
        {
            const auto pipe = pipe_of_a_launcher();
            const StopSignal stop;
            for (int i = 0; i < 3; ++i) std::raise(SIGUSR1);
            char byte = 0;
            if (!stop.requested() || ::read(pipe[0], &byte, 1) != 1) std::_Exit(1);
            std::raise(SIGTERM);
        },
        testing::ExitedWithCode(128 + SIGTERM), "");
}

/// Also by a program that fails before it listens for signals.
TEST(StopSignal, ALauncherIsToldThatTheReasonOfAFailureIsSaid) {
    EXPECT_EXIT(
        {
            const auto pipe = pipe_of_a_launcher();
            strata::train::note_reason_is_told();
            char byte = 0;
            std::_Exit(::read(pipe[0], &byte, 1) == 1 && byte == 'e' ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

TEST(StopSignal, AFileThatTookThePipesNumberIsNotWrittenTo) {
    EXPECT_EXIT(
        {
            const auto pipe = pipe_of_a_launcher();
            const StopSignal stop;
            std::FILE* const file = std::tmpfile();
            ::dup2(::fileno(file), pipe[1]);
            std::raise(SIGUSR1);
            std::_Exit(stop.requested() && ::lseek(pipe[1], 0, SEEK_END) == 0 ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

}  // namespace
