// What the curve of a report tells: its ticks, what is marked at its edges, and that the mean lies where it should.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/train/debiased_mean.hpp>
#include <strata/train/loss_curve.hpp>

namespace {

using strata::train::DebiasedMean;
using strata::train::loss_curve;
using strata::train::StepMetrics;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<StepMetrics> losses(std::int64_t first, std::int64_t last,
                                const std::function<double(std::int64_t)>& loss) {
    std::vector<StepMetrics> history;
    for (std::int64_t step = first; step <= last; ++step) history.push_back({.step = step, .loss = loss(step)});
    return history;
}

/// The first group of every match.
std::vector<std::string> found(const std::string& text, const std::string& pattern) {
    std::vector<std::string> all;
    const std::regex expression{pattern};
    for (std::sregex_iterator at{text.begin(), text.end(), expression}, end; at != end; ++at) all.push_back((*at)[1]);
    return all;
}
std::vector<std::string> ticks(const std::string& svg, const std::string& axis) {
    return found(svg, "<text class=\"" + axis + "\"[^>]*>([^<]*)<");
}
std::size_t count(const std::string& svg, const std::string& name) {
    return found(svg, "(class=\"" + name + "\")").size();
}
std::string said(const std::string& svg) { return found(svg, "<p class=\"under\">([^\n]*)</p>").at(0); }

using Points = std::vector<std::pair<double, double>>;

/// The points of the only line of a name, as losses over pixels: read by the ticks of the axis.
Points line(const std::string& svg, const std::string& name) {
    const auto values = ticks(svg, "loss"), heights = found(svg, "<text class=\"loss\"[^>]* y=\"([^\"]*)\"");
    const double low = std::stod(values.front()), high = std::stod(values.back());
    const double at_low = std::stod(heights.front()), at_high = std::stod(heights.back());
    Points points;
    const auto all = found(svg, "<polyline class=\"" + name + "\"[^>]*points=\"([^\"]*)\"");
    EXPECT_EQ(all.size(), 1U);
    const std::regex pair{"([-0-9.]+),([-0-9.]+)"};
    for (std::sregex_iterator at{all[0].begin(), all[0].end(), pair}, end; at != end; ++at) {
        const double y = std::stod((*at)[2]) + 4;  // a tick's text stands 4 pixels below its line
        points.emplace_back(std::stod((*at)[1]), low + (high - low) * (y - at_low) / (at_high - at_low));
    }
    return points;
}

TEST(LossCurve, TheMeanIsThatOfTheValuesSoFarFromTheFirstOneOn) {
    DebiasedMean mean{0.9};
    EXPECT_TRUE(std::isnan(mean.value()));
    double moment = 0;  // as Adam has it
    for (int n = 1; n <= 50; ++n) {
        const double value = 3.0 + std::sin(n);
        mean.add(value);
        moment = 0.9 * moment + 0.1 * value;
        EXPECT_NEAR(mean.value(), moment / (1 - std::pow(0.9, n)), 1e-12) << n;
    }
}

TEST(LossCurve, StepsThatAreMissingWeighAsMuchAsTheirTime) {
    DebiasedMean mean{0.5};
    mean.add(1);
    mean.add(4, 3);
    EXPECT_DOUBLE_EQ(mean.value(), (1 * 0.125 + 4) / 1.125);
}

TEST(LossCurve, AShortRunIsDrawnAsItIsAndNothingLagsBehindIt) {
    const std::string svg = loss_curve(losses(1, 8, [](std::int64_t step) { return 1.0 / static_cast<double>(step); }));
    EXPECT_EQ(count(svg, "mean"), 0U);
    EXPECT_EQ(count(svg, "dot"), 8U);
    const Points drawn = line(svg, "each");
    ASSERT_EQ(drawn.size(), 8U);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(drawn[i].second, 1.0 / static_cast<double>(i + 1), 0.003) << i;
    EXPECT_EQ(ticks(svg, "loss"), (std::vector<std::string>{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
    EXPECT_EQ(ticks(svg, "step"), (std::vector<std::string>{"1", "2", "3", "4", "5", "6", "7", "8"}));
    EXPECT_EQ(said(svg), "The loss of every step. At step 8: 0.125.");
}

TEST(LossCurve, TheRedLineIsTheMeanThatIsSaid) {
    const auto history = losses(1, 600, [](std::int64_t step) {
        return 0.3 + 1.5 * std::exp(-static_cast<double>(step) / 60) + 0.2 * std::sin(1.7 * static_cast<double>(step));
    });
    const std::string svg = loss_curve(history);
    EXPECT_NE(said(svg).find("Red: its mean over about 16 steps (exponential, corrected for its start). At step 600: "),
              std::string::npos)
        << said(svg);
    const Points mean = line(svg, "mean");
    ASSERT_EQ(mean.size(), 600U);
    const double decay = std::exp(-1 / 15.0);
    double moment = 0;
    for (std::size_t i = 0; i < mean.size(); ++i) {
        moment = decay * moment + (1 - decay) * history[i].loss;
        EXPECT_NEAR(mean[i].second, moment / (1 - std::pow(decay, static_cast<double>(i + 1))), 0.005) << i;
    }
    EXPECT_EQ(ticks(svg, "step"), (std::vector<std::string>{"100", "200", "300", "400", "500", "600"}));
    EXPECT_EQ(count(svg, "beyond"), 0U);
    EXPECT_EQ(count(svg, "dot"), 0U);
}

TEST(LossCurve, PointsBeyondTheScaleAreMarkedCountedAndNamed) {
    const auto history = losses(1, 20000, [](std::int64_t step) {
        const double noise = 0.1 * std::sin(2.3 * static_cast<double>(step));
        return step % 5000 == 0 ? 80.0 : step == 10004 ? 200.0 : step == 12345 ? -50.0 : 0.5 + noise;
    });
    const std::string svg = loss_curve(history);
    EXPECT_EQ(count(svg, "beyond"), 5U) << "steps 10,000 and 10,004 are one triangle";
    EXPECT_NE(said(svg).find(" 5 points are above the scale (&#9650; at the edge); the farthest: 200 at step 10,004."),
              std::string::npos)
        << said(svg);
    EXPECT_NE(said(svg).find(" 1 point is below the scale (&#9660; at the edge): -50 at step 12,345."),
              std::string::npos)
        << said(svg);
    EXPECT_NE(said(svg).find("count as its edge"), std::string::npos) << said(svg);
    EXPECT_EQ(ticks(svg, "loss"), (std::vector<std::string>{"0.35", "0.40", "0.45", "0.50", "0.55", "0.60", "0.65"}))
        << "as if the spikes were not there";
    EXPECT_EQ(ticks(svg, "step"), (std::vector<std::string>{"2,000", "4,000", "6,000", "8,000", "10,000", "12,000",
                                                            "14,000", "16,000", "18,000", "20,000"}));
    const Points mean = line(svg, "mean");
    for (std::size_t i = 100; i < mean.size(); ++i) EXPECT_NEAR(mean[i].second, 0.5, 0.02) << "no spike lifts it";
    EXPECT_LT(svg.size(), 100'000U);
}

TEST(LossCurve, ASpikeOfALongRunIsSeenWhicheverStepItIs) {
    for (const std::int64_t at : {7001, 7002, 7003, 7004, 7011}) {
        const auto history = losses(1, 20000, [at](std::int64_t step) {
            return step == at ? 0.69 : 0.5 + 0.1 * std::sin(static_cast<double>(step));
        });
        const Points drawn = line(loss_curve(history), "each");
        const auto highest = std::max_element(drawn.begin(), drawn.end(),
                                              [](const auto& a, const auto& b) { return a.second < b.second; });
        EXPECT_NEAR(highest->second, 0.69, 0.002) << at;
    }
}

TEST(LossCurve, NothingOfAShortRunIsBeyondTheScale) {
    const std::string svg = loss_curve(losses(1, 60, [](std::int64_t step) { return step == 1 ? 100.0 : 0.5; }));
    EXPECT_EQ(count(svg, "beyond"), 0U);
    EXPECT_EQ(ticks(svg, "loss").back(), "100");
}

TEST(LossCurve, LossesThatAreNotFiniteBreakNothingAndAreCounted) {
    const auto history = losses(1, 40, [](std::int64_t step) {
        return step == 10 ? nan : step == 20 ? HUGE_VAL : 1.0 / static_cast<double>(step);
    });
    const std::string svg = loss_curve(history);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    EXPECT_NE(said(svg).find(" 2 steps have no finite loss."), std::string::npos) << said(svg);
    EXPECT_EQ(count(svg, "each"), 3U) << "the line is interrupted twice";
    EXPECT_EQ(loss_curve(losses(1, 3, [](std::int64_t) { return nan; })),
              "<p class=\"under\">No curve: 3 steps have no finite loss.</p>\n");
}

TEST(LossCurve, MissingStepsInterruptTheLine) {
    auto history = losses(1, 100, [](std::int64_t step) { return static_cast<double>(step % 7); });
    history.erase(history.begin() + 40, history.begin() + 60);
    EXPECT_EQ(count(loss_curve(history), "each"), 2U);
    history.erase(history.begin() + 41, history.end());  // step 61 stands alone
    const std::string svg = loss_curve(history);
    EXPECT_EQ(found(svg, "(<circle class=\"each\")").size(), 1U);
}

TEST(LossCurve, ARunOfOneStepIsADotInTheMiddleOfAScale) {
    const std::string svg = loss_curve(losses(1, 1, [](std::int64_t) { return 0.6931; }));
    EXPECT_EQ(found(svg, "(<circle class=\"each\")").size(), 1U);
    EXPECT_EQ(ticks(svg, "step"), (std::vector<std::string>{"1"}));
    EXPECT_EQ(ticks(svg, "loss"), (std::vector<std::string>{"0.60", "0.65", "0.70", "0.75", "0.80"}));
    EXPECT_EQ(said(svg), "The loss of step 1: 0.6931.");
    EXPECT_EQ(loss_curve({}), "<p class=\"under\">No step has been done yet.</p>\n");
}

TEST(LossCurve, AConstantLossIsALevelLineWithAScaleAroundIt) {
    for (const double loss : {0.5, 0.0, -2.0, 1e-30, 3e20}) {
        const std::string svg = loss_curve(losses(1, 30, [loss](std::int64_t) { return loss; }));
        const auto labels = ticks(svg, "loss");
        ASSERT_GE(labels.size(), 4U) << loss;
        EXPECT_LT(std::stod(labels.front()), loss) << labels.front();
        EXPECT_GT(std::stod(labels.back()), loss) << labels.back();
        for (std::size_t i = 1; i < labels.size(); ++i) EXPECT_NE(labels[i], labels[i - 1]) << loss;
        const Points drawn = line(svg, "each");
        for (const auto& [x, value] : drawn) EXPECT_NEAR(value, loss, std::abs(loss) * 0.01 + 1e-40) << x;
    }
}

TEST(LossCurve, TicksAreRoundWhateverTheLossesAre) {
    for (const double scale : {1e-9, 3e-5, 0.07, 1.38, 42.0, 999.0, 7.3e6, 8e12})
        for (const double base : {0.0, 1.0, -3.0}) {
            const std::string svg = loss_curve(
                losses(1, 50, [&](std::int64_t step) { return scale * (base + static_cast<double>(step) / 50); }));
            const auto labels = ticks(svg, "loss");
            ASSERT_GE(labels.size(), 3U);
            ASSERT_LE(labels.size(), 9U);
            const double every = std::stod(labels[1]) - std::stod(labels[0]);
            const double leading = every / std::pow(10, std::floor(std::log10(every) + 1e-6));
            EXPECT_TRUE(std::abs(leading - 1) < 1e-3 || std::abs(leading - 2) < 1e-3 || std::abs(leading - 5) < 1e-3)
                << every;
            for (std::size_t i = 1; i < labels.size(); ++i) {
                EXPECT_NEAR(std::stod(labels[i]) - std::stod(labels[i - 1]), every, 1e-6 * every)
                    << "a label is rounded: " << labels[i];
                EXPECT_LE(labels[i].size(), 9U) << labels[i];
            }
            EXPECT_EQ(std::find(labels.begin(), labels.end(), "-0"), labels.end());
        }
}

TEST(LossCurve, TicksOfStepsAreIntegersAlsoInTheMiddleOfALog) {
    EXPECT_EQ(ticks(loss_curve(losses(5000, 5002, [](std::int64_t) { return 1.0; })), "step"),
              (std::vector<std::string>{"5,000", "5,001", "5,002"}));
    EXPECT_EQ(ticks(loss_curve(losses(501, 1100, [](std::int64_t) { return 1.0; })), "step"),
              (std::vector<std::string>{"600", "700", "800", "900", "1,000", "1,100"}));
}

TEST(LossCurve, TheLargestNumbersThereAreOverflowNothing) {
    const double most = std::numeric_limits<double>::max();
    const std::string svg =
        loss_curve(losses(1, 200, [most](std::int64_t step) { return step % 2 == 0 ? most : -most; }));
    EXPECT_EQ(svg.find("inf"), std::string::npos);
    EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
