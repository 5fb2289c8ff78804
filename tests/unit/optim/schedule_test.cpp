// Schedules against their definitions and against diffusers' get_scheduler.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/options/schedule.hpp>

namespace {

using strata::schedule_shapes;
using strata::optim::Schedule;
using strata::optim::ScheduleShape;

TEST(Schedule, EveryShapeHasOneName) {
    std::set<std::string_view> names;
    std::set<ScheduleShape> shapes;
    for (const auto& [name, shape] : schedule_shapes) {
        names.insert(name);
        shapes.insert(shape);
    }
    EXPECT_EQ(names.size(), schedule_shapes.size());
    EXPECT_EQ(shapes.size(), schedule_shapes.size());
    EXPECT_EQ(*shapes.rbegin(), ScheduleShape::sine) << "the last one";
    EXPECT_EQ(static_cast<std::size_t>(*shapes.rbegin()) + 1, schedule_shapes.size());
}

TEST(Schedule, WarmsUpFromZeroToTheFullRate) {
    for (const auto shape : {ScheduleShape::constant_with_warmup, ScheduleShape::linear, ScheduleShape::cosine}) {
        const Schedule schedule{.shape = shape, .lr = 2.0, .warmup_steps = 4, .total_steps = 20};
        EXPECT_EQ(schedule.at(0), 0.0);
        EXPECT_EQ(schedule.at(2), 1.0);
        EXPECT_EQ(schedule.at(4), 2.0);
    }
    EXPECT_EQ((Schedule{.shape = ScheduleShape::constant, .lr = 2.0, .warmup_steps = 4}.at(0)), 2.0);
}

TEST(Schedule, LinearAndCosineEndAtEndLr) {
    for (const auto shape : {ScheduleShape::linear, ScheduleShape::cosine}) {
        const Schedule schedule{.shape = shape, .lr = 1.0, .end_lr = 0.2, .warmup_steps = 2, .total_steps = 12};
        EXPECT_NEAR(schedule.at(7), 0.6, 1e-12) << "half way";
        EXPECT_NEAR(schedule.at(12), 0.2, 1e-12);
        for (int step = 3; step <= 12; ++step) EXPECT_LT(schedule.at(step), schedule.at(step - 1));
    }
    EXPECT_EQ((Schedule{.shape = ScheduleShape::linear, .lr = 1.0, .end_lr = 0.2, .total_steps = 5}.at(100)), 0.2);
}

TEST(Schedule, IsFiniteWhenEverythingIsWarmup) {
    for (const auto shape : {ScheduleShape::linear, ScheduleShape::cosine}) {
        EXPECT_TRUE(std::isfinite(Schedule{.shape = shape, .warmup_steps = 5, .total_steps = 5}.at(5)));
    }
}

TEST(Schedule, PolynomialFallsByItsPower) {
    const Schedule schedule{.shape = ScheduleShape::polynomial,
                            .lr = 1e-4,
                            .end_lr = 1e-7,
                            .warmup_steps = 100,
                            .total_steps = 1000,
                            .power = 0.8};
    EXPECT_EQ(schedule.at(0), 0.0);
    EXPECT_EQ(schedule.at(50), 5e-5);
    EXPECT_EQ(schedule.at(100), 1e-4);
    EXPECT_NEAR(schedule.at(550), 5.7477e-5, 1e-9);
    EXPECT_EQ(schedule.at(1000), 1e-7);
    EXPECT_EQ(schedule.at(5000), 1e-7);
}

TEST(Schedule, CosineWithRestartsStartsAgainFromTheTop) {
    const Schedule schedule{
        .shape = ScheduleShape::cosine_with_restarts, .lr = 1.0, .end_lr = 0.2, .total_steps = 30, .cycles = 3};
    for (const int start : {0, 10, 20}) {
        EXPECT_NEAR(schedule.at(start), 1.0, 1e-12);
        EXPECT_NEAR(schedule.at(start + 5), 0.6, 1e-12);
    }
    EXPECT_EQ(schedule.at(30), 0.2);
    EXPECT_EQ(schedule.at(31), 0.2);
}

TEST(Schedule, SineRisesFromTheMiddleAndComesBack) {
    const Schedule schedule{
        .shape = ScheduleShape::sine, .lr = 1.0, .end_lr = 0.2, .warmup_steps = 4, .total_steps = 24};
    EXPECT_EQ(schedule.at(0), 0.0);
    EXPECT_NEAR(schedule.at(2), 0.3, 1e-12);
    EXPECT_NEAR(schedule.at(4), 0.6, 1e-12);
    EXPECT_NEAR(schedule.at(14), 1.0, 1e-12);
    EXPECT_NEAR(schedule.at(24), 0.6, 1e-12);
    EXPECT_NEAR(schedule.at(34), 0.2, 1e-12) << "beyond the end it swings on";
}

TEST(Schedule, ARateOfYourOwnDecidesAlone) {
    struct Mine {
        [[nodiscard]] double at(std::int64_t step) const { return 3.0 * static_cast<double>(step); }
    };
    EXPECT_EQ(Schedule::of(Mine{}).at(7), 21.0);
}

TEST(Schedule, MatchesDiffusers) {
    const std::filesystem::path path = std::filesystem::path{STRATA_REFERENCE_DIR} / "golden/lr_schedules.json";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    std::ifstream file{path};
    const auto document = nlohmann::json::parse(file);
    int compared = 0;
    for (const auto& golden : document.at("schedules")) {
        const auto& args = golden.at("args");
        const auto named = std::find_if(schedule_shapes.begin(), schedule_shapes.end(), [&](const auto& each) {
            return each.name == args.at("name").get<std::string>();
        });
        ASSERT_NE(named, schedule_shapes.end()) << args;
        const Schedule schedule{.shape = named->value,
                                .lr = args.at("base_lr"),
                                .end_lr = named->value == ScheduleShape::polynomial ? 1e-7 : 0.0,
                                .warmup_steps = args.value("num_warmup_steps", 0),
                                .total_steps = args.value("num_training_steps", 1),
                                .cycles = args.value("num_cycles", 1),
                                .power = args.value("power", 1.0)};
        for (std::size_t step = 0; step < golden.at("lr").size(); ++step) {
            EXPECT_NEAR(schedule.at(static_cast<std::int64_t>(step)), golden.at("lr")[step].get<double>(), 1e-18)
                << args << " step " << step;
        }
        ++compared;
    }
    EXPECT_EQ(compared, 14);
}

}  // namespace
