// The moving average: decay and values against diffusers' EMAModel, and the same bits at every level.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/core/bf16.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/ema.hpp>

#include "golden.hpp"

namespace {

using strata::bf16;
using strata::core::simd_level;
using strata::core::SimdLevel;
using strata::optim::EmaOptions;
using strata::optim::update_average;
using strata::optim::testing::normal_values;
using strata::optim::testing::rounded;

TEST(Ema, DecayGrowsFromZeroToItsLimits) {
    const EmaOptions plain{.decay = 0.5};
    EXPECT_EQ(plain.at(1), 0.0);
    EXPECT_EQ(plain.at(2), 2.0 / 11);
    EXPECT_EQ(plain.at(9), 0.5);
    EXPECT_EQ(plain.at(1000), 0.5);
    const EmaOptions late{.min_decay = 0.3, .update_after_step = 5};
    EXPECT_EQ(late.at(6), 0.0) << "the average still becomes the weights, whatever min_decay says";
    EXPECT_EQ(late.at(7), 0.3);
    const EmaOptions warm{.use_warmup = true, .inv_gamma = 2.0, .power = 1.0};
    EXPECT_EQ(warm.at(3), 0.5);
}

TEST(Ema, MovesByOneMinusDecayAtEveryLengthAndLevel) {
    std::vector<std::size_t> lengths{65537, 150'001};
    for (std::size_t n = 0; n <= 67; ++n) lengths.push_back(n);
    for (const std::size_t n : lengths) {
        const auto weight = normal_values(n, 1);
        const auto start = normal_values(n, 2);
        auto first = start;
        update_average<float>(0.9, weight, first, SimdLevel::baseline);
        for (std::size_t i = 0; i < n; ++i) {
            ASSERT_NEAR(first[i], 0.9 * static_cast<double>(start[i]) + 0.1 * static_cast<double>(weight[i]), 1e-6);
        }
        for (int level = 1; level <= static_cast<int>(simd_level()); ++level) {
            auto other = start;
            update_average<float>(0.9, weight, other, static_cast<SimdLevel>(level));
            ASSERT_EQ(first, other) << n << " elements, level " << level;
        }
    }
}

TEST(Ema, ReadsBf16Weights) {
    std::vector<float> average{1.0F, 2.0F};
    update_average<bf16>(0.75, rounded({3.0F, -2.0F}), average);
    EXPECT_EQ(average, (std::vector<float>{1.5F, 1.0F}));
}

TEST(Ema, MatchesDiffusers) {
    const std::filesystem::path path = std::filesystem::path{STRATA_REFERENCE_DIR} / "golden/ema.json";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    std::ifstream file{path};
    const auto document = nlohmann::json::parse(file);
    int traces = 0;
    for (const auto& golden : document.at("variants")) {
        const auto& args = golden.at("args");
        EmaOptions schedule;
        schedule.decay = args.value("decay", schedule.decay);
        schedule.min_decay = args.value("min_decay", schedule.min_decay);
        schedule.update_after_step = args.value("update_after_step", schedule.update_after_step);
        schedule.use_warmup = args.value("use_ema_warmup", schedule.use_warmup);
        schedule.inv_gamma = args.value("inv_gamma", schedule.inv_gamma);
        schedule.power = args.value("power", schedule.power);
        for (const auto& pair : golden.at("get_decay")) {
            EXPECT_NEAR(schedule.at(pair[0].get<std::int64_t>()), pair[1].get<double>(), 1e-15) << args << ' ' << pair;
        }
        auto average = golden.at("trace_init").get<std::vector<float>>();
        for (const auto& step : golden.at("trace")) {
            const auto k = step.at("step_call").get<std::int64_t>();
            EXPECT_NEAR(schedule.at(k), step.at("cur_decay_value").get<double>(), 1e-15);
            update_average<float>(schedule.at(k), step.at("param").get<std::vector<float>>(), average);
            const auto shadow = step.at("shadow").get<std::vector<float>>();
            for (std::size_t i = 0; i < shadow.size(); ++i) EXPECT_EQ(average[i], shadow[i]) << args << " step " << k;
        }
        ++traces;
    }
    EXPECT_EQ(traces, 5);
}

}  // namespace
