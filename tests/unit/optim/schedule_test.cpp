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

TEST(Schedule, MatchesDiffusers) {
    const std::filesystem::path path = std::filesystem::path{STRATA_REFERENCE_DIR} / "golden/lr_schedules.json";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    std::ifstream file{path};
    const auto document = nlohmann::json::parse(file);
    int compared = 0;
    for (const auto& golden : document.at("schedules")) {
        const auto& args = golden.at("args");
        const auto shape = find_schedule_shape(args.at("name").get<std::string>());
        if (!shape) continue;
        const Schedule schedule{.shape = *shape,
                                .lr = args.at("base_lr"),
                                .warmup_steps = args.value("num_warmup_steps", 0),
                                .total_steps = args.value("num_training_steps", 1)};
        for (std::size_t step = 0; step < golden.at("lr").size(); ++step) {
            EXPECT_NEAR(schedule.at(static_cast<std::int64_t>(step)), golden.at("lr")[step].get<double>(), 1e-18)
                << args << " step " << step;
        }
        ++compared;
    }
    EXPECT_EQ(compared, 6);
}

}  // namespace
