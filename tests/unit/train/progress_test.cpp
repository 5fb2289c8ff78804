// What a person sees: a line that is drawn again on a terminal, lines that stay in a file.

#include <string>

#include <gtest/gtest.h>

#include <strata/train/progress.hpp>

namespace {

using strata::train::clock_text;
using strata::train::StepMetrics;

std::string shown(bool live, std::int64_t last_step) {
    testing::internal::CaptureStdout();
    strata::train::Progress progress{true, live};
    progress.step({.step = 1, .loss = 0.5, .learning_rate = 1e-3, .samples_per_second = 8, .seconds = 1}, last_step);
    progress.note("saved");
    return testing::internal::GetCapturedStdout();
}

TEST(Progress, ALineNamesStepLossRateSpeedAndTimeLeft) {
    EXPECT_EQ(shown(false, 10), "step 1/10  loss 0.5000  lr 1.00e-03  8.0 samples/s  ETA 0:00\nsaved\n");
}

TEST(Progress, OnATerminalTheLineIsDrawnInPlaceAndNotesGetTheirOwn) {
    EXPECT_EQ(shown(true, 10), "\r\x1b[Kstep 1/10  loss 0.5000  lr 1.00e-03  8.0 samples/s  ETA 0:00\nsaved\n");
}

TEST(Progress, OnlyRankZeroShowsAnything) {
    testing::internal::CaptureStdout();
    strata::train::Progress progress{false, false};
    progress.step({.step = 1}, 1);
    progress.note("x");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Progress, TheTimeLeftComesFromTheMeanTimeOfAStep) {
    testing::internal::CaptureStdout();
    strata::train::Progress progress{true, false};
    progress.step({.step = 1, .seconds = 2}, 100);
    progress.step({.step = 2, .seconds = 4}, 100);  // within five seconds of the first line: not shown
    progress.step({.step = 100, .seconds = 6}, 100);
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(text.find("step 2/"), std::string::npos);
    EXPECT_NE(text.find("step 100/100"), std::string::npos);
}

TEST(Progress, ANoteIsOneLineWhateverNameIsInIt) {
    testing::internal::CaptureStdout();
    strata::train::Progress{true, false}.note("saved /runs/\x1b[2J\n[ST2001] all is lost\r\xe2\x80\xae");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "saved /runs/\\x1b[2J\\n[ST2001] all is lost\\r\\u202e\n");
}

TEST(Progress, ClocksHaveHoursOnlyWhenNeeded) {
    EXPECT_EQ(clock_text(0), "0:00");
    EXPECT_EQ(clock_text(-3), "0:00");
    EXPECT_EQ(clock_text(65.4), "1:05");
    EXPECT_EQ(clock_text(3723), "1:02:03");
}

}  // namespace
