// The loss scale against the sequences of DeepSpeed's rule, and what its steps hand out.

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/optim/loss_scale.hpp>

namespace {

using strata::Errc;
using strata::Error;
using strata::optim::LossScale;
using strata::optim::LossScaleOptions;

/// The scale after each step: o overflow, . clean. An error ends the list with -1.
std::vector<double> scales(const LossScaleOptions& options, std::string_view steps) {
    LossScale scale{options};
    std::vector<double> seen;
    for (const char step : steps) {
        try {
            scale.update(step == 'o');
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::loss_scale_exhausted);
            seen.push_back(-1);
            break;
        }
        seen.push_back(scale.value());
    }
    return seen;
}

TEST(LossScale, FollowsDeepSpeedsSequences) {
    using List = std::vector<double>;
    EXPECT_EQ(scales({.initial = 256, .window = 2, .hysteresis = 1}, ".........."),
              (List{256, 256, 512, 512, 1024, 1024, 2048, 2048, 4096, 4096}));
    EXPECT_EQ(scales({.initial = 256, .window = 2, .hysteresis = 1}, "oo...o"), (List{128, 64, 64, 64, 128, 64}));
    EXPECT_EQ(scales({.initial = 16, .window = 2, .hysteresis = 1}, "ooooo"), (List{8, 4, 2, 1, -1}));
    EXPECT_EQ(scales({.initial = 65536, .window = 2, .hysteresis = 2}, "ooo...oo"),
              (List{65536, 32768, 16384, 16384, 16384, 32768, 32768, 16384}));
    EXPECT_EQ(scales({}, "o.o.oo"), (List{65536, 65536, 32768, 32768, 16384, 8192}));
    EXPECT_EQ(scales({.consecutive_hysteresis = true}, "o.o.oo"), (List{65536, 65536, 65536, 65536, 65536, 32768}));
}

TEST(LossScale, UnscalesByTheScaleThatGradientsWereMadeWith) {
    LossScale scale{{.initial = 8, .window = 1, .hysteresis = 1}};
    for (const bool overflow : {false, false, true, false, false}) {
        const double made_with = scale.value();
        const auto step = scale.update(overflow);
        EXPECT_EQ(step.unscale * made_with, 1.0);
        EXPECT_EQ(step.skip, overflow);
    }
    EXPECT_NE(scale.value(), 8.0) << "the scale has moved meanwhile";
}

TEST(LossScale, AStaticScaleStaysAndStillSkips) {
    LossScale scale{{.initial = 4, .window = 1, .dynamic = false}};
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(scale.update(true).skip);
    EXPECT_FALSE(scale.update(false).skip);
    EXPECT_EQ(scale.value(), 4.0);
}

TEST(LossScale, ARestoredScaleGoesOnAsIfNothingHadHappened) {
    const LossScaleOptions options{.initial = 1024, .window = 3};
    LossScale whole{options};
    LossScale first{options};
    const std::string_view steps = "o...o.oo.....o";
    for (std::size_t i = 0; i < 6; ++i) first.update(steps[i] == 'o');
    LossScale second{options};
    second.restore(first.state());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        whole.update(steps[i] == 'o');
        if (i >= 6) second.update(steps[i] == 'o');
    }
    EXPECT_EQ(second.state(), whole.state());
}

TEST(LossScale, RefusesSettingsOutOfRange) {
    for (const LossScaleOptions& options :
         {LossScaleOptions{.initial = 0}, LossScaleOptions{.initial = std::numeric_limits<double>::infinity()},
          LossScaleOptions{.window = 0}, LossScaleOptions{.hysteresis = 0}, LossScaleOptions{.minimum = 0},
          LossScaleOptions{.initial = 0.5}}) {
        try {
            const LossScale scale{options};
            ADD_FAILURE() << "accepted";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::bad_value);
        }
    }
}

}  // namespace
