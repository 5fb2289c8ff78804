// Schedules against their definitions and against diffusers' get_scheduler.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/optim/schedule.hpp>

namespace {

using strata::optim::find_schedule_shape;
using strata::optim::Schedule;
using strata::optim::schedule_names;
using strata::optim::ScheduleShape;

TEST(Schedule, NamesAndShapesBelongTogether) {
    EXPECT_EQ(find_schedule_shape("constant"), ScheduleShape::constant);
    EXPECT_EQ(find_schedule_shape("cosine"), ScheduleShape::cosine);
    EXPECT_FALSE(find_schedule_shape("cosin"));
    for (const auto name : schedule_names) EXPECT_TRUE(find_schedule_shape(name)) << name;
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
    const Schedule schedule{.shape = ScheduleShape::polynomial, .lr = 1e-4, .end_lr = 1e-7, .warmup_steps = 100,
                            .total_steps = 1000, .power = 0.8};
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
        const auto shape = find_schedule_shape(args.at("name").get<std::string>());
        ASSERT_TRUE(shape) << args;
        const Schedule schedule{.shape = *shape,
                                .lr = args.at("base_lr"),
                                .end_lr = *shape == ScheduleShape::polynomial ? 1e-7 : 0.0,
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
