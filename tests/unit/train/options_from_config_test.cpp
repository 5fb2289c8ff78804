// A configuration file's numbers arrive in the trainer's options; what it leaves out keeps the rule's defaults.

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <strata/core/option_check.hpp>
#include <strata/core/ranges.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/policy/setup.hpp>
#include <strata/train/options_from_config.hpp>

#include "../storage/temporary_folder.hpp"

namespace {

using namespace strata;
using strata::train::options_from;
using strata_test::thrown_by;

using Plain = Setup<>;
using WithLion = Setup<Optimizer<Lion>>;
using OnCpu = Setup<Ema<>>;
struct SomeTrainer {
    using setup = Setup<Ema<Device>, Optimizer<Sgd>>;
};
static_assert(std::same_as<decltype(options_from<SomeTrainer>({}, 1)), TrainOptions<Sgd>>, "a trainer's Options");

TEST(OptionsFromConfig, NumbersArrive) {
    config::TrainerConfig config;
    config.max_train_steps = 70;
    config.seed = 5;
    config.learning_rate = 3e-4;
    config.lr_end = 1e-5;
    config.lr_warmup_steps = 7;
    config.lr_scheduler = ScheduleShape::linear;
    config.gradient_accumulation_steps = 3;
    config.max_grad_norm = 0.25;
    config.checkpoint_step_interval = 11;
    config.checkpoints_total_limit = 4;
    config.optimizer_beta2 = 0.95;
    config.optimizer_epsilon = 1e-6;
    const auto options = options_from<Plain>(config, 100);
    EXPECT_EQ(options.max_steps, 70);
    EXPECT_EQ(options.seed, 5U);
    EXPECT_EQ(options.schedule.lr, 3e-4);
    EXPECT_EQ(options.schedule.end_lr, 1e-5);
    EXPECT_EQ(options.schedule.warmup_steps, 7);
    EXPECT_EQ(options.schedule.total_steps, 70);
    EXPECT_EQ(options.schedule.shape, ScheduleShape::linear);
    EXPECT_EQ(options.gradient_accumulation_steps, 3);
    EXPECT_EQ(options.max_grad_norm, 0.25);
    EXPECT_EQ(options.checkpoint_every, 11);
    EXPECT_EQ(options.checkpoints_kept, 4);
    EXPECT_EQ(options.update.beta1, AdamW::Options{}.beta1);
    EXPECT_EQ(options.update.beta2, 0.95);
    EXPECT_EQ(options.update.epsilon, 1e-6);
}

TEST(OptionsFromConfig, EpochsBecomeStepsRoundedUp) {
    config::TrainerConfig config;
    config.max_train_steps = 0;
    config.num_train_epochs = 3;
    config.gradient_accumulation_steps = 2;
    EXPECT_EQ(options_from<Plain>(config, 5).max_steps, 8);
}

TEST(OptionsFromConfig, MoreEpochsThanCanBeCountedAreRefused) {
    config::TrainerConfig config;
    config.max_train_steps = 0;
    config.gradient_accumulation_steps = 2;
    config.num_train_epochs = std::numeric_limits<std::int64_t>::max() / 5 + 1;
    const auto error = thrown_by([&] { (void)options_from<Plain>(config, 5); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("num_train_epochs")) << error.message;
    // The largest number of micro-batches there is, odd, rounded up without leaving its range.
    config.num_train_epochs = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(options_from<Plain>(config, 1).max_steps, std::numeric_limits<std::int64_t>::max() / 2 + 1);
}

TEST(OptionsFromConfig, AWarmUpLongerThanTheEpochsTakeIsRefused) {
    config::TrainerConfig config;
    config.max_train_steps = 0;
    config.num_train_epochs = 2;
    config.gradient_accumulation_steps = 1;
    config.lr_warmup_steps = 10;
    EXPECT_EQ(options_from<Plain>(config, 5).schedule.warmup_steps, 10);
    config.lr_warmup_steps = 11;
    const auto error = thrown_by([&] { (void)options_from<Plain>(config, 5); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("'lr_warmup_steps' is 11, above the 10 steps of 'num_train_epochs'")) << error.message;
}

TEST(OptionsFromConfig, ARuleWithoutEpsilonIgnoresIt) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.optimizer_weight_decay = 0.3;
    const auto options = options_from<WithLion>(config, 5);
    EXPECT_EQ(options.update.weight_decay, 0.3);
    EXPECT_EQ(options.update.beta2, Lion::Options{}.beta2);
}

/// Rules of a user's own: one without weight decay, one without any number.
template <class Numbers>
struct PlainDescent {
    using Options = Numbers;
    struct Scalars {
        float lr;
    };
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t) noexcept { return {static_cast<float>(lr)}; }
    static void apply(float& weight, float gradient, float*, const Scalars& s) noexcept { weight = weight - s.lr * gradient; }
};
struct OneNumber {
    double momentum = 0.25;
    void check(OptionCheck& check) const { check.number("momentum", momentum, ranges::momentum); }
};
struct None {};
using OnlyMomentum = PlainDescent<OneNumber>;
using NoNumbers = PlainDescent<None>;
using WithOneNumber = Setup<Optimizer<OnlyMomentum>>;
using WithNoNumbers = Setup<Optimizer<NoNumbers>>;
static_assert(optim::UpdateRule<OnlyMomentum> && optim::UpdateRule<NoNumbers>);

TEST(OptionsFromConfig, ARuleMayHaveOnlySomeNumbersOrNone) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.optimizer_weight_decay = 0.3;
    EXPECT_EQ(options_from<WithOneNumber>(config, 5).update.momentum, 0.25);
    config.optimizer_momentum = 0.5;
    EXPECT_EQ(options_from<WithOneNumber>(config, 5).update.momentum, 0.5);
    EXPECT_EQ(options_from<WithNoNumbers>(config, 5).max_steps, 1);
}

TEST(OptionsFromConfig, NumbersOutOfTheirRangeAreCalledByTheirKeys) {
    config::TrainerConfig config;
    config.max_train_steps = 10;
    config.learning_rate = -1;
    config.optimizer_beta1 = 1.5;
    config.checkpoints_total_limit = 0;
    EXPECT_EQ(thrown_by([&] { (void)options_from<Plain>(config, 5); }).message,
              "[ST2103] 'learning_rate' is -1; 'optimizer_beta1' is 1.5; 'checkpoints_total_limit' is 0. Fix: use 'learning_rate' "
              "from 0 to 10; use 'optimizer_beta1' from 0 to 0.999999; use 'checkpoints_total_limit' from 1 to 1e+12.");

    const auto refused = [](auto spoil) {
        config::TrainerConfig bad;
        bad.max_train_steps = 10;
        spoil(bad);
        return thrown_by([&] { (void)options_from<SomeTrainer>(bad, 5); }).message;
    };
    const auto expect = [&](const char* says, auto spoil) {
        const std::string message = refused(spoil);
        EXPECT_EQ(message.find(says), 9U) << message;  // after the number
    };
    expect("'max_train_steps' is -1", [](auto& c) { c.max_train_steps = -1; });
    expect("'max_train_steps' is 0", [](auto& c) { c.max_train_steps = 0; });
    expect("'lr_end' is 1, above 'learning_rate' = 1e-04", [](auto& c) { c.lr_end = 1; });
    expect("'lr_warmup_steps' is 11, above 'max_train_steps' = 10", [](auto& c) { c.lr_warmup_steps = 11; });
    expect("'lr_num_cycles' is 0", [](auto& c) { c.lr_num_cycles = 0; });
    expect("'lr_power' is 0", [](auto& c) { c.lr_power = 0; });
    expect("'optimizer_momentum' is 1", [](auto& c) { c.optimizer_momentum = 1; });
    expect("'gradient_accumulation_steps' is 0", [](auto& c) { c.gradient_accumulation_steps = 0; });
    expect("'max_grad_norm' is -1", [](auto& c) { c.max_grad_norm = -1; });
    expect("'max_grad_norm' is -1", [](auto& c) { c.max_grad_norm = -1, c.grad_clip_method = config::GradClipMethod::value; });
    expect("'ema_decay' is 1", [](auto& c) { c.ema_decay = 1; });
    expect("'ema_update_interval' is 0", [](auto& c) { c.ema_update_interval = 0; });
    expect("'prefetch_bucket_bytes' is -2", [](auto& c) { c.prefetch_bucket_bytes = -2; });
    expect("'max_live_parameters' is -1", [](auto& c) { c.max_live_parameters = -1; });
    expect("'collective_timeout' is 0", [](auto& c) { c.collective_timeout = 0; });
    expect("'checkpoint_step_interval' is -1", [](auto& c) { c.checkpoint_step_interval = -1; });
}

TEST(OptionsFromConfig, EpochsWithoutStepsAreRefused) {
    config::TrainerConfig config;
    config.num_train_epochs = 2;
    const auto message = [&](std::int64_t per_epoch) {
        return thrown_by([&] { (void)options_from<Plain>(config, per_epoch); }).message;
    };
    EXPECT_NE(message(0).find("the data's number of micro-batches an epoch is 0"), std::string::npos) << message(0);
    config.gradient_accumulation_steps = 0;
    EXPECT_NE(message(5).find("'gradient_accumulation_steps' is 0"), std::string::npos) << message(5);
    config.num_train_epochs = -2;
    EXPECT_NE(message(5).find("'num_train_epochs' is -2"), std::string::npos) << message(5);
}

TEST(OptionsFromConfig, MomentumIsSgdsAlone) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).update.momentum, Sgd::Options{}.momentum);
    config.optimizer_momentum = 0.5;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).update.momentum, 0.5);
    EXPECT_EQ(options_from<Plain>(config, 5).update.beta1, AdamW::Options{}.beta1);
}

TEST(OptionsFromConfig, TheClippingMethodSaysWhatTheLimitIsOf) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.max_grad_norm = 0.25;
    EXPECT_EQ(options_from<Plain>(config, 5).max_grad_norm, 0.25);
    EXPECT_EQ(options_from<Plain>(config, 5).max_grad_value, 0.0);
    config.grad_clip_method = config::GradClipMethod::value;
    EXPECT_EQ(options_from<Plain>(config, 5).max_grad_norm, 0.0);
    EXPECT_EQ(options_from<Plain>(config, 5).max_grad_value, 0.25);
}

TEST(OptionsFromConfig, LimitsOfStageThreeAndOfWaitingArrive) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    const auto defaults = options_from<Plain>(config, 5);
    EXPECT_EQ(defaults.prefetch_bucket_bytes, TrainOptions<AdamW>{}.prefetch_bucket_bytes);
    EXPECT_EQ(defaults.max_live_parameters, TrainOptions<AdamW>{}.max_live_parameters);
    EXPECT_EQ(defaults.collective_timeout, TrainOptions<AdamW>{}.collective_timeout);
    config.prefetch_bucket_bytes = 7;
    config.max_live_parameters = 8;
    config.collective_timeout = 9;
    const auto options = options_from<Plain>(config, 5);
    EXPECT_EQ(options.prefetch_bucket_bytes, 7);
    EXPECT_EQ(options.max_live_parameters, 8);
    EXPECT_EQ(options.collective_timeout, std::chrono::seconds{9});
}

TEST(OptionsFromConfig, TheAveragesDecayAndIntervalArrive) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.ema_update_interval = 10;
    const auto options = options_from<SomeTrainer>(config, 5);
    EXPECT_EQ(options.ema_interval, 10);
    EXPECT_EQ(options.ema.decay, 0.995);
    // SimpleTuner's ramp for a decay of 0.995.
    EXPECT_EQ(options.ema.at(1), 0.0);
    EXPECT_NEAR(options.ema.at(2), 0.181818, 1e-6);
    EXPECT_NEAR(options.ema.at(1000), 0.99108, 1e-6);
    EXPECT_EQ(options.ema.at(1791), 0.995);
}

TEST(OptionsFromConfig, AnAverageThatWarmsUpIsTheWeightsAndThenHasItsWholeDecay) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.ema_decay = 0.9;
    for (const std::int64_t warmup : {1, 2, 3, 50}) {
        config.ema_warmup_steps = warmup;
        const optim::EmaSchedule ema = options_from<SomeTrainer>(config, 5).ema;
        for (std::int64_t step = 1; step < 100; ++step)
            EXPECT_EQ(ema.at(step), step < warmup ? 0.0 : 0.9) << warmup << ", step " << step;
    }
    // What SimpleTuner's own test has: a parameter that is 1, 2, 3 at steps 1, 2, 3.
    config.ema_warmup_steps = 3;
    const optim::EmaSchedule ema = options_from<SomeTrainer>(config, 5).ema;
    double average = 0;
    for (const double weight : {1.0, 2.0, 3.0})
        average -= (1 - ema.at(static_cast<std::int64_t>(weight))) * (average - weight);
    EXPECT_NEAR(average, 2.1, 1e-12);
}

TEST(OptionsFromConfig, AnAverageThatTheProgramDoesNotComposeIsRefused) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    config.use_ema = true;
    const auto error = thrown_by([&] { (void)options_from<Plain>(config, 5); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("'use_ema' is true")) << error.message;
    EXPECT_TRUE(error.says("add Ema<> to the policies")) << error.message;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).max_steps, 1);

    config.use_ema = false;
    config.ema_device = config::EmaDevice::cpu;  // of no account without an average
    EXPECT_EQ(options_from<Plain>(config, 5).max_steps, 1);
}

TEST(OptionsFromConfig, AnAverageThatTheFileForbidsOrPutsElsewhereIsRefused) {
    config::TrainerConfig config;
    config.max_train_steps = 1;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).max_steps, 1) << "without the key the program decides";
    config.use_ema = false;
    const auto forbidden = thrown_by([&] { (void)options_from<SomeTrainer>(config, 5); });
    EXPECT_EQ(forbidden.code, Errc::bad_value);
    EXPECT_TRUE(forbidden.says("'use_ema' is false")) << forbidden.message;

    config.use_ema = true;
    config.ema_device = config::EmaDevice::accelerator;
    EXPECT_EQ(options_from<SomeTrainer>(config, 5).max_steps, 1);
    const auto on_device = thrown_by([&] { (void)options_from<OnCpu>(config, 5); });
    EXPECT_EQ(on_device.code, Errc::bad_value);
    EXPECT_TRUE(on_device.says("'ema_device' is 'accelerator'")) << on_device.message;
    EXPECT_TRUE(on_device.says("with Ema<Device>, and build it again")) << on_device.message;
    config.ema_device = config::EmaDevice::cpu;
    EXPECT_EQ(options_from<OnCpu>(config, 5).max_steps, 1);
    const auto on_cpu = thrown_by([&] { (void)options_from<SomeTrainer>(config, 5); });
    EXPECT_TRUE(on_cpu.says("'ema_device' is 'cpu'")) << on_cpu.message;
}

}  // namespace
