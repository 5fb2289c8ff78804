// Every number of TrainOptions is looked at, with the ranges that a configuration file has.

#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/options/deepspeed_schedules.hpp>
#include <strata/train/batch_source.hpp>
#include <strata/train/validate.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata;
using optim::Schedule;
using optim::ScheduleShape;
using strata_test::thrown_by;
using train::validate;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Rule>
std::string refusal(const TrainOptions<Rule>& options) {
    const auto error = thrown_by([&] { (void)validate(options); });
    EXPECT_EQ(error.code, Errc::bad_value);
    return error.message;
}

struct BadOption {
    std::string says;
    std::function<void(TrainOptions<AdamW>&)> spoil;
};

TEST(Validate, TakesTheDefaultsOfEveryRule) {
    EXPECT_NO_THROW((void)validate(TrainOptions<AdamW>{}));
    EXPECT_NO_THROW((void)validate(TrainOptions<Adam>{}));
    EXPECT_NO_THROW((void)validate(TrainOptions<Adagrad>{}));
    EXPECT_NO_THROW((void)validate(TrainOptions<Lamb>{}));
    EXPECT_NO_THROW((void)validate(TrainOptions<Lion>{}));
    EXPECT_NO_THROW((void)validate(TrainOptions<Sgd>{}));
}

TEST(Validate, RefusesEachNumberOutOfItsRangeByName) {
    const std::vector<BadOption> all{
        {"max_steps is 0", [](auto& o) { o.max_steps = 0; }},
        {"max_steps is -5", [](auto& o) { o.max_steps = -5; }},
        {"schedule.lr is -1", [](auto& o) { o.schedule.lr = -1; }},
        {"schedule.lr is nan", [](auto& o) { o.schedule.lr = nan; }},
        {"schedule.lr is inf", [](auto& o) { o.schedule.lr = infinity; }},
        {"schedule.end_lr is -0.5", [](auto& o) { o.schedule.end_lr = -0.5; }},
        {"schedule.end_lr is 0.5, above schedule.lr = 1e-04", [](auto& o) { o.schedule.end_lr = 0.5; }},
        {"schedule.warmup_steps is -1", [](auto& o) { o.schedule.warmup_steps = -1; }},
        {"schedule.total_steps is -1", [](auto& o) { o.schedule.total_steps = -1; }},
        {"schedule.cycles is 0", [](auto& o) { o.schedule.cycles = 0; }},
        {"schedule.power is 0", [](auto& o) { o.schedule.power = 0; }},
        {"engine.update.beta1 is 1.5", [](auto& o) { o.engine.update.beta1 = 1.5; }},
        {"engine.update.beta2 is -0.1", [](auto& o) { o.engine.update.beta2 = -0.1; }},
        {"engine.update.epsilon is 0", [](auto& o) { o.engine.update.epsilon = 0; }},
        {"engine.update.weight_decay is nan", [](auto& o) { o.engine.update.weight_decay = nan; }},
        {"engine.groups[0].takes is empty", [](auto& o) { o.engine.groups.resize(1); }},
        {"engine.groups[1].lr_factor is -2",
         [](auto& o) {
             o.engine.groups.resize(2, {.takes = [](std::string_view) { return true; }});
             o.engine.groups[1].lr_factor = -2;
         }},
        {"engine.groups[0].update.beta1 is 1",
         [](auto& o) {
             o.engine.groups.resize(1, {.takes = [](std::string_view) { return true; }});
             o.engine.groups[0].update.beta1 = 1;
         }},
        {"engine.gradient_accumulation_steps is 0", [](auto& o) { o.engine.gradient_accumulation_steps = 0; }},
        {"engine.max_grad_norm is -1", [](auto& o) { o.engine.max_grad_norm = -1; }},
        {"engine.max_grad_norm is nan", [](auto& o) { o.engine.max_grad_norm = nan; }},
        {"engine.max_grad_value is -1", [](auto& o) { o.engine.max_grad_value = -1; }},
        {"engine.max_grad_norm is 1 and engine.max_grad_value is 0.5",
         [](auto& o) { o.engine.max_grad_norm = 1, o.engine.max_grad_value = 0.5; }},
        {"engine.loss_scale.initial is 0", [](auto& o) { o.engine.loss_scale.initial = 0; }},
        {"engine.loss_scale.initial is 0.5, below engine.loss_scale.minimum = 1",
         [](auto& o) { o.engine.loss_scale.initial = 0.5; }},
        {"engine.loss_scale.window is 0", [](auto& o) { o.engine.loss_scale.window = 0; }},
        {"engine.loss_scale.hysteresis is 0", [](auto& o) { o.engine.loss_scale.hysteresis = 0; }},
        {"engine.loss_scale.minimum is nan", [](auto& o) { o.engine.loss_scale.minimum = nan; }},
        {"engine.ema.decay is 1", [](auto& o) { o.engine.ema.decay = 1; }},
        {"engine.ema.min_decay is 0.99995", [](auto& o) { o.engine.ema.min_decay = 0.99995; }},
        {"engine.ema.update_after_step is -2", [](auto& o) { o.engine.ema.update_after_step = -2; }},
        {"engine.ema.inv_gamma is 0", [](auto& o) { o.engine.ema.inv_gamma = 0; }},
        {"engine.ema.power is 0", [](auto& o) { o.engine.ema.power = 0; }},
        {"engine.ema.interval is 0", [](auto& o) { o.engine.ema.interval = 0; }},
        {"engine.tiers.state.budget_bytes is 18446744073709551615",
         [](auto& o) { o.engine.tiers.state.budget_bytes = static_cast<std::size_t>(-1); }},
        {"engine.bucket_numel is -1", [](auto& o) { o.engine.bucket_numel = -1; }},
        {"engine.prefetch_bucket_bytes is -2", [](auto& o) { o.engine.prefetch_bucket_bytes = -2; }},
        {"engine.max_live_parameters is -1", [](auto& o) { o.engine.max_live_parameters = -1; }},
        {"engine.tiers.nvme_lock_timeout is -1",
         [](auto& o) { o.engine.tiers.nvme_lock_timeout = std::chrono::seconds{-1}; }},
        {"engine.buckets_in_flight is 0", [](auto& o) { o.engine.buckets_in_flight = 0; }},
        {"engine.tiers.units.io.queue_depth is 0", [](auto& o) { o.engine.tiers.units.io.queue_depth = 0; }},
        {"engine.tiers.state.io.threads is 0", [](auto& o) { o.engine.tiers.state.io.threads = 0; }},
        {"engine.tiers.state.io.block_bytes is 5000, no multiple of 4096",
         [](auto& o) { o.engine.tiers.state.io.block_bytes = 5000; }},
        {"collective_timeout is 0", [](auto& o) { o.collective_timeout = std::chrono::seconds{0}; }},
        {"checkpoint_every is -1", [](auto& o) { o.checkpoint_every = -1; }},
        {"checkpoints_kept is 0", [](auto& o) { o.checkpoints_kept = 0; }},
        {"engine.non_finite_limit is 0", [](auto& o) { o.engine.non_finite_limit = 0; }},
        {"name cannot be a trainer's folder: a/b", [](auto& o) { o.name = "a/b"; }},
        {"name cannot be a trainer's folder: checkpoints", [](auto& o) { o.name = "checkpoints"; }},
    };
    for (const BadOption& bad : all) {
        TrainOptions<AdamW> options;
        bad.spoil(options);
        const std::string message = refusal(options);
        EXPECT_EQ(message.find("[ST2103] " + bad.says), 0U) << message << "\nfor " << bad.says;
        EXPECT_EQ(message.find("; "), std::string::npos) << "one mistake, one problem: " << message;
    }
}

TEST(Validate, SaysEverythingThatIsWrongAtOnce) {
    TrainOptions<AdamW> options{
        .max_steps = 10, .schedule = {.lr = -1}, .engine = {.update = {.beta1 = 1.5}}, .checkpoints_kept = 0};
    EXPECT_EQ(
        refusal(options),
        "[ST2103] schedule.lr is -1; engine.update.beta1 is 1.5; checkpoints_kept is 0. Fix: use schedule.lr from 0 to 10; "
        "use engine.update.beta1 from 0 to 0.999999; use checkpoints_kept from 1 to 1e+12.");
}

TEST(Validate, OtherRulesNumbersAreRefusedToo) {
    const auto says = [](const std::string& message, const char* words) {
        EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    says(refusal(TrainOptions<Lion>{.engine = {.update = {.beta2 = 1}}}), "engine.update.beta2 is 1");
    says(refusal(TrainOptions<Adam>{.engine = {.update = {.epsilon = -1}}}), "engine.update.epsilon is -1");
    says(refusal(TrainOptions<Sgd>{.engine = {.update = {.momentum = 1}}}), "engine.update.momentum is 1");
    says(refusal(TrainOptions<Sgd>{.engine = {.update = {.dampening = 2}}}), "engine.update.dampening is 2");
    says(refusal(TrainOptions<Sgd>{.engine = {.update = {.momentum = 0, .nesterov = true}}}),
         "engine.update.nesterov is true with engine.update.momentum 0");
    says(refusal(TrainOptions<Adagrad>{.engine = {.update = {.lr_decay = -1}}}), "engine.update.lr_decay is -1");
    says(refusal(TrainOptions<Adagrad>{.engine = {.update = {.initial_accumulator_value = nan}}}),
         "engine.update.initial_accumulator_value is nan");
    says(refusal(TrainOptions<Lamb>{.engine = {.update = {.min_weight_norm = 3, .max_weight_norm = 2}}}),
         "use engine.update.max_weight_norm >= 3");
}

/// A rule of a user's own, with a check of its own; and one that says nothing.
struct Checked {
    struct Options {
        double sharpness = 1;
        void check(OptionCheck& check) const { check.number("sharpness", sharpness, {0.5, 2}); }
    };
};
struct Unchecked {
    struct Options {
        double sharpness = -7;
    };
};

TEST(Validate, ARuleOfOnesOwnBringsItsOwnCheck) {
    OptionCheck check;
    check.part("update", Checked::Options{.sharpness = 3});
    check.part("update", Unchecked::Options{});
    EXPECT_EQ(thrown_by([&] { check.finish(); }).message,
              "[ST2103] update.sharpness is 3. Fix: use update.sharpness from 0.5 to 2.");
}

/// One that describes itself, with numbers that go together.
struct Described {
    struct Options {
        double least = 0.5;
        double most = 2;
        std::int64_t every = 1;
        static void describe(auto& option) {
            option("least", &Options::least, {0, 1}, "The least");
            option("most", &Options::most, {0, 10}, "The most");
            option("every", &Options::every, {1, 100},
                   {.help = "How often", .unit = "steps", .special = "1 is always"});
        }
        void check(OptionCheck& check) const {
            if (check.described(*this) && least > most)
                check.refuse(check.name("least") + " is above " + check.name("most"), "swap them");
        }
    };
};

TEST(Validate, ADescriptionIsACheckOfEachNumberAndTheRulesOwnComesAfterIt) {
    EXPECT_NO_THROW((void)validate(TrainOptions<Described>{}));
    EXPECT_EQ(
        refusal(TrainOptions<Described>{.engine = {.update = {.least = 2, .most = 1, .every = 0}}}),
        "[ST2103] engine.update.least is 2; engine.update.every is 0. Fix: use engine.update.least from 0 to 1; use "
        "engine.update.every from 1 to 100 (steps, 1 is always).");
    EXPECT_EQ(refusal(TrainOptions<Described>{.engine = {.update = {.least = 1, .most = 0.75}}}),
              "[ST2103] engine.update.least is above engine.update.most. Fix: swap them.");
}

/// Averaging policies: one with numbers of its own, and one without.
struct OwnAverage {
    struct Options {
        std::int64_t start = 10;
        static void describe(auto& option) {
            option("start", &Options::start, ranges::count, "Steps before the first weights count");
        }
    };
};
struct SilentAverage {};
static_assert(std::same_as<zero::average_options_t<OwnAverage>, OwnAverage::Options>);
static_assert(std::same_as<zero::average_options_t<SilentAverage>, optim::EmaOptions>);

TEST(Validate, AnAverageOfOnesOwnHasItsNumbersInTheTree) {
    TrainOptions<AdamW, OwnAverage::Options> options;
    EXPECT_EQ(validate(options).engine.ema.start, 10);
    options.engine.ema.start = -1;
    EXPECT_EQ(thrown_by([&] { (void)validate(options); }).message,
              "[ST2103] engine.ema.start is -1. Fix: use engine.ema.start from 0 to 1e+12.");
}

TEST(Validate, TheEngineRoundsWithTheRunsSeed) {
    EXPECT_EQ(validate(TrainOptions<AdamW>{.seed = 7}).engine.rounding_seed, 7U);
}

TEST(Validate, AWarmUpLongerThanTheRunIsRefused) {
    TrainOptions<AdamW> options{.max_steps = 10, .schedule = {.shape = ScheduleShape::linear, .warmup_steps = 10}};
    EXPECT_NO_THROW((void)validate(options));
    options.schedule.warmup_steps = 11;
    EXPECT_EQ(
        refusal(options),
        "[ST2103] schedule.warmup_steps is 11, above max_steps = 10. Fix: use a shorter warm-up, or train longer.");
}

TEST(Validate, AScheduleWithoutATotalHasTheRuns) {
    for (const auto& [name, shape] : schedule_shapes) {
        const TrainOptions<AdamW> given{.max_steps = 40, .schedule = {.shape = shape, .lr = 1e-2, .warmup_steps = 4}};
        Schedule meant = given.schedule;
        meant.total_steps = 40;
        const TrainOptions<AdamW> completed = validate(given);
        EXPECT_EQ(completed.schedule.total_steps, 40);
        for (std::int64_t step = 0; step < 40; ++step) EXPECT_EQ(completed.schedule.at(step), meant.at(step)) << name;
    }
    EXPECT_EQ(validate(TrainOptions<AdamW>{.max_steps = 40, .schedule = {.total_steps = 100}}).schedule.total_steps,
              100);
}

TEST(Validate, AScheduleThatEndsBeforeTheRunIsRefusedWhereThatHarms) {
    const auto ending = [](ScheduleShape shape, double end_lr) {
        return TrainOptions<AdamW>{.max_steps = 40,
                                   .schedule = {.shape = shape, .lr = 1e-2, .end_lr = end_lr, .total_steps = 30}};
    };
    EXPECT_EQ(
        refusal(ending(ScheduleShape::cosine, 1e-3)),
        "[ST2103] schedule.total_steps is 30, below max_steps = 40: from step 30 on the rate would rise and fall anew. Fix: "
        "leave schedule.total_steps out, then it is the run's, or give at least 40.");
    EXPECT_NE(refusal(ending(ScheduleShape::sine, 1e-3)).find("rise and fall anew"), std::string::npos);
    EXPECT_NE(refusal(ending(ScheduleShape::linear, 0)).find("stay at 0"), std::string::npos);
    for (const auto shape : {ScheduleShape::linear, ScheduleShape::polynomial, ScheduleShape::cosine_with_restarts})
        EXPECT_NO_THROW((void)validate(ending(shape, 1e-3))) << "it goes on at end_lr";
    EXPECT_NO_THROW((void)validate(ending(ScheduleShape::constant, 0))) << "it has no end";
}

TEST(Validate, DeepSpeedsSchedulesAreLookedAtAsWell) {
    const auto with = [](auto rate) { return TrainOptions<AdamW>{.max_steps = 50, .schedule = Schedule::of(rate)}; };
    using namespace optim;
    for (const std::int64_t warmup : {0, -1}) {
        const std::string says = "schedule.warmup_steps is " + std::to_string(warmup);
        for (const std::string& message :
             {refusal(with(WarmupLr{.warmup_steps = warmup})), refusal(with(WarmupDecayLr{.warmup_steps = warmup})),
              refusal(with(WarmupCosineLr{.warmup_steps = warmup}))})
            EXPECT_EQ(message, "[ST2103] " + says + ". Fix: use schedule.warmup_steps from 1 to 1e+12.");
    }
    EXPECT_NE(refusal(with(WarmupLr{})).find("schedule.warmup_steps is 1000, above max_steps = 50"), std::string::npos);
    EXPECT_NE(refusal(with(WarmupLr{.max_lr = nan, .warmup_steps = 5})).find("schedule.max_lr is nan"),
              std::string::npos);
    EXPECT_NE(refusal(with(WarmupDecayLr{.warmup_steps = 5, .total_steps = 20}))
                  .find("schedule.total_steps is 20, below max_steps"),
              std::string::npos);
    EXPECT_NE(refusal(with(WarmupCosineLr{.cos_min_ratio = 2, .warmup_steps = 5})).find("schedule.cos_min_ratio is 2"),
              std::string::npos);
    EXPECT_NE(refusal(with(OneCycle{.first_steps = 0})).find("schedule.first_steps is 0"), std::string::npos);
    EXPECT_NE(refusal(with(LrRangeTest{.step_size = 0})).find("schedule.step_size is 0"), std::string::npos);
    EXPECT_NO_THROW((void)validate(with(OneCycle{})));
    EXPECT_NO_THROW((void)validate(with(LrRangeTest{})));
    // A total that was left out is the run's.
    const auto completed = validate(with(WarmupDecayLr{.max_lr = 1e-3, .warmup_steps = 5}));
    const WarmupDecayLr meant{.max_lr = 1e-3, .warmup_steps = 5, .total_steps = 50};
    for (std::int64_t step = 0; step < 50; ++step) EXPECT_EQ(completed.schedule.at(step), meant.at(step)) << step;
    EXPECT_GT(completed.schedule.at(49), 0.0);
}

TEST(Validate, WhatASourceSaysOfItselfIsLookedAt) {
    const auto source = [](std::int64_t per_epoch, std::int64_t samples) {
        return FunctionSource{[](std::int64_t) { return 0; }, per_epoch, samples};
    };
    const auto message = [&](std::int64_t per_epoch, std::int64_t samples) {
        auto made = source(per_epoch, samples);
        return thrown_by([&] { train::check_source(made); }).message;
    };
    EXPECT_EQ(
        message(10, 0),
        "[ST2103] the source's samples_per_micro_batch is 0. Fix: use a source whose samples_per_micro_batch is from 1 to 1e+09.");
    EXPECT_EQ(
        message(0, 8),
        "[ST2103] the source's micro_batches_per_epoch is 0. Fix: use a source whose micro_batches_per_epoch is from 1 to 1e+12.");
    EXPECT_NE(message(-1, -8).find("samples_per_micro_batch is -8; the source's micro_batches_per_epoch is -1"),
              std::string::npos);
    auto good = source(1, 1);
    EXPECT_NO_THROW(train::check_source(good));
}

}  // namespace
