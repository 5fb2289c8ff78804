// What a person sees: a line that is drawn again on a terminal, lines that stay in a file.

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

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
    EXPECT_EQ(shown(false, 10), "step 1/10  loss 0.5000  lr 1.00e-03  8.0 samples/s  data_wait 0.00 s  ETA --\nsaved\n")
        << "nobody knows after one step";
}

TEST(Progress, TrainersOfOneSessionHaveTheirNamesAndPaces) {
    testing::internal::CaptureStdout();
    strata::train::Progress progress{true, true};
    for (const std::int64_t step : {1, 2}) {
        const auto seconds = static_cast<double>(step);
        progress.step({.step = step, .loss = 1, .seconds = seconds}, 13, "critic");
        progress.step({.step = step, .loss = 2, .seconds = 10 * seconds}, 13);
        std::this_thread::sleep_for(std::chrono::milliseconds{120});  // lines come ten times a second at most
    }
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_NE(text.find("critic: step 2/13  loss 1.0000  lr 0.00e+00  0.0 samples/s  data_wait 0.00 s  ETA 0:11"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("Kstep 2/13  loss 2.0000  lr 0.00e+00  0.0 samples/s  data_wait 0.00 s  ETA 1:50"),
              std::string::npos)
        << text;
}

TEST(Progress, OnATerminalTheLineIsDrawnInPlaceAndNotesGetTheirOwn) {
    EXPECT_EQ(shown(true, 10),
              "\r\x1b[Kstep 1/10  loss 0.5000  lr 1.00e-03  8.0 samples/s  data_wait 0.00 s  ETA --\nsaved\n");
}

TEST(Progress, OnlyRankZeroShowsAnything) {
    testing::internal::CaptureStdout();
    strata::train::Progress progress{false, false};
    progress.step({.step = 1}, 1);
    progress.note("x");
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

/// The last line that is shown when the steps are so many seconds apart; the first line is that of the first step.
std::string last_line(std::int64_t first_step, double began, const std::vector<double>& seconds_apart,
                      std::int64_t last_step, double speed = 8) {
    testing::internal::CaptureStdout();
    strata::train::Progress progress{true, true};
    StepMetrics m{.step = first_step, .samples_per_second = speed, .seconds = began};
    progress.step(m, last_step);
    for (const double seconds : seconds_apart) {
        ++m.step;
        m.seconds += seconds;
        std::this_thread::sleep_for(std::chrono::milliseconds{110});  // else a terminal's line is not drawn again
        progress.step(m, last_step);
    }
    const std::string text = testing::internal::GetCapturedStdout();
    return text.substr(text.rfind("step "));
}

TEST(Progress, TheTimeLeftIsKnownFromTheSecondStepOn) {
    EXPECT_NE(last_line(1, 60, {}, 101).find("ETA --"), std::string::npos);
    EXPECT_NE(last_line(1, 60, {2}, 102).find("ETA 3:20"), std::string::npos)
        << last_line(1, 60, {2}, 102) << "what came before the first step does not count";
    EXPECT_NE(last_line(1, 1, {}, 1).find("ETA 0:00"), std::string::npos) << "the last step is known to be the last";
}

TEST(Progress, TheTimeLeftOfAResumedRunIsThatOfItsOwnSteps) {
    EXPECT_NE(last_line(501, 90000, {}, 1000).find("ETA --"), std::string::npos)
        << "not from 90,000 seconds of earlier runs";
    EXPECT_NE(last_line(501, 90000, {3}, 602).find("ETA 5:00"), std::string::npos);
}

TEST(Progress, TheTimeLeftFollowsTheMeanOfTheSteps) {
    // (4 x 0.95 + 2) / 1.95 = 2.97 seconds a step: each weighs nearly the same, the first one not all
    EXPECT_NE(last_line(1, 1, {4, 2}, 103).find("ETA 4:57"), std::string::npos) << last_line(1, 1, {4, 2}, 103);
}

TEST(Progress, ASpeedThatIsNotKnownIsNotInvented) {
    EXPECT_NE(last_line(1, 0, {}, 10, std::numeric_limits<double>::infinity()).find("  -- samples/s"),
              std::string::npos);
    EXPECT_NE(last_line(1, 0, {}, 10, std::nan("")).find("  -- samples/s"), std::string::npos);
}

TEST(Progress, LinesOfAFileComeEveryFiveSecondsAndAtTheEnd) {
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
