#include <string>

#include <gtest/gtest.h>

#include <strata/config/intent_options.hpp>
#include <strata/options/train_options.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::thrown_by;
using Options = strata::TrainOptions<strata::zero::NoRule>;

struct Momentum {
    struct Options {
        double beta1 = 0.5;
        static void describe(auto& option) { option("beta1", &Options::beta1, strata::ranges::beta1, "A decay"); }
    };
};

TEST(Intent, PoliciesAreWrittenAsCppHasThem) {
    EXPECT_EQ(policies({}), "");
    EXPECT_EQ(policies({.stage = 2, .state = KeptOn::all_on(TierName::cpu), .precision = FormatName::bf16}),
              "ZeroStage<2>, OffloadTarget<Cpu>, Precision<Bf16>");
    EXPECT_EQ(
        policies({.stage = 3, .state = KeptOn::all_on(TierName::nvme), .parameters = KeptOn::all_on(TierName::nvme)}),
        "ZeroStage<3>, OffloadTarget<Nvme, OptimizerState, Parameters>");
    EXPECT_EQ(policies({.stage = 3,
                        .state = KeptOn{TierName::device, TierName::cpu, 70},
                        .parameters = KeptOn::all_on(TierName::cpu),
                        .rule = RuleName::lion,
                        .recompute = 2,
                        .average = AverageName::cpu}),
              "ZeroStage<3>, OffloadTarget<Split<Device, Cpu, 70>>, OffloadTarget<Cpu, Parameters>, Optimizer<Lion>, "
              "Recompute<EveryOther<2>>, Ema<Cpu>");
}

TEST(Intent, OptionsGoIntoTheTreeByTheirPaths) {
    Intent intent;
    intent.set("engine.max_grad_norm", 1.0);
    intent.set("engine.max_grad_norm", 0.5);
    intent.set("engine.gradient_accumulation_steps", std::int64_t{4});
    intent.set("engine.tiers.nvme_path", std::string{"/nvme"});
    intent.set("engine.loss_scale.dynamic", false);
    intent.set("schedule.shape", std::string{"cosine"});
    intent.set("engine.update.beta1", 0.8);
    Options options;
    EXPECT_EQ(apply(intent, options), std::vector<std::string>{"engine.update.beta1"});
    EXPECT_EQ(options.engine.max_grad_norm, 0.5);
    EXPECT_EQ(options.engine.gradient_accumulation_steps, 4);
    EXPECT_EQ(options.engine.tiers.nvme_path, "/nvme");
    EXPECT_FALSE(options.engine.loss_scale.dynamic);
    EXPECT_EQ(options.schedule.shape, strata::ScheduleShape::cosine);

    strata::TrainOptions<Momentum> of_a_rule;
    EXPECT_TRUE(apply(intent, of_a_rule).empty());
    EXPECT_EQ(of_a_rule.engine.update.beta1, 0.8);
}

TEST(Intent, ValuesOutOfRangeAreOneErrorThatSaysWhereTheyWereGiven) {
    Intent intent;
    intent.set("engine.max_grad_norm", -1.0, "a.json:3:2");
    intent.set("engine.gradient_accumulation_steps", 1.5, "--gradient_accumulation_steps");
    intent.set("schedule.shape", std::string{"cosin"});
    const auto problem = thrown_by([&] {
        Options options;
        (void)apply(intent, options);
    });
    EXPECT_EQ(problem.code, Errc::bad_value);
    for (const char* part : {"a.json:3:2 (engine.max_grad_norm) is -1",
                             "--gradient_accumulation_steps (engine.gradient_accumulation_steps) is no whole number",
                             "schedule.shape is no one of `constant`"})
        EXPECT_NE(problem.message.find(part), std::string::npos) << problem.message;
}

TEST(Intent, ARateOfDeepSpeedsBecomesTheSchedule) {
    Intent intent;
    intent.set("schedule.lr", 2e-4);
    intent.rate = strata::optim::WarmupLr{.warmup_steps = 10};
    intent.rate_follows_lr = true;
    Options options;
    (void)apply(intent, options);
    EXPECT_EQ(options.schedule.at(100), 2e-4);
    EXPECT_EQ(options.schedule.at(1), 0.0);
}

TEST(Intent, WhatIsSaidLaterGoesBeforeAndTheRestStays) {
    Intent base;
    base.composition = {.stage = 2, .rule = RuleName::lion};
    base.set("engine.max_grad_norm", 1.0);
    base.batch.micro = 4;
    Intent above;
    above.composition.stage = 3;
    above.set("schedule.lr", 1e-3);
    const Intent both = overlay(base, above);
    EXPECT_EQ(both.composition, (Composition{.stage = 3, .rule = RuleName::lion}));
    EXPECT_EQ(both.number("engine.max_grad_norm"), 1.0);
    EXPECT_EQ(both.number("schedule.lr"), 1e-3);
    EXPECT_EQ(both.batch.micro, 4);
}

TEST(Intent, ABatchIsCompletedAsDeepSpeedDoes) {
    const auto on = [](std::optional<int> global, std::optional<int> micro, std::optional<int> steps, int ranks) {
        Intent intent;
        if (global) intent.batch.global = *global;
        if (micro) intent.batch.micro = *micro;
        if (steps) intent.set("engine.gradient_accumulation_steps", std::int64_t{*steps});
        const Batch batch = batch_on(intent, ranks);
        return std::tuple{batch.global, batch.micro, batch.accumulation};
    };
    using Three = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
    EXPECT_EQ(on(32, 16, 1, 2), (Three{32, 16, 1}));
    EXPECT_EQ(on(32, 8, 2, 2), (Three{32, 8, 2}));
    EXPECT_EQ(on(32, 8, {}, 2), (Three{32, 8, 2}));
    EXPECT_EQ(on(32, {}, 2, 2), (Three{32, 8, 2}));
    EXPECT_EQ(on({}, 8, 2, 2), (Three{32, 8, 2}));
    EXPECT_EQ(on(64, {}, {}, 1), (Three{64, 64, 1}));
    EXPECT_EQ(on({}, 8, {}, 2), (Three{16, 8, 1}));
    EXPECT_EQ(on({}, {}, 3, 2), (Three{6, 1, 3}));
    EXPECT_THROW(on(33, 17, 2, 2), strata::Error);
    EXPECT_THROW(on(32, 18, 1, 2), strata::Error);
    EXPECT_THROW(on(1, 2, {}, 4), strata::Error) << "no micro-batch is left";
}

TEST(Intent, ABatchThatDoesNotAddUpHasDeepSpeedsSentenceAndThreeWaysOut) {
    Intent intent;
    intent.batch = {.global = 33, .micro = 17};
    intent.set("engine.gradient_accumulation_steps", std::int64_t{2});
    const auto problem = thrown_by([&] { (void)batch_on(intent, 1); });
    EXPECT_EQ(
        problem.message,
        "[ST2103] check batch related parameters: train_batch_size is not equal to micro_batch_per_gpu * "
        "gradient_acc_step * world_size, 33 != 17 * 2 * 1. Fix: (1) set train_batch_size to 34, (2) set "
        "train_micro_batch_size_per_gpu to what divides train_batch_size over 1 ranks, or (3) leave train_batch_size "
        "out and give the other two.");
    intent.batch = {.global = 32, .micro = 4};
    EXPECT_NE(
        thrown_by([&] { (void)batch_on(intent, 2); })
            .message.find("(1) set train_batch_size to 16, (2) set train_micro_batch_size_per_gpu to 8, or (3) set "
                          "gradient_accumulation_steps to 4"),
        std::string::npos);
}

}  // namespace
