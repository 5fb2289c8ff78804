// A configuration file's numbers arrive in the trainer's options; what it leaves out keeps the rule's defaults.

#include <limits>

#include <gtest/gtest.h>

#include <strata/optim/adamw.hpp>
#include <strata/optim/lion.hpp>
#include <strata/train/options_from_config.hpp>

#include "../storage/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::train::options_from;
using strata_test::thrown_by;

TEST(OptionsFromConfig, NumbersArrive) {
    strata::config::TrainerConfig config;
    config.max_train_steps = 70;
    config.seed = 5;
    config.learning_rate = 3e-4;
    config.lr_end = 1e-5;
    config.lr_warmup_steps = 7;
    config.lr_scheduler = strata::config::LrScheduler::linear;
    config.gradient_accumulation_steps = 3;
    config.max_grad_norm = 0.25;
    config.checkpoint_step_interval = 11;
    config.checkpoints_total_limit = 4;
    config.optimizer_beta2 = 0.95;
    config.optimizer_epsilon = 1e-6;
    const auto options = options_from<strata::AdamW>(config, 100);
    EXPECT_EQ(options.max_steps, 70);
    EXPECT_EQ(options.seed, 5U);
    EXPECT_EQ(options.schedule.lr, 3e-4);
    EXPECT_EQ(options.schedule.end_lr, 1e-5);
    EXPECT_EQ(options.schedule.warmup_steps, 7);
    EXPECT_EQ(options.schedule.total_steps, 70);
    EXPECT_EQ(options.schedule.shape, strata::optim::ScheduleShape::linear);
    EXPECT_EQ(options.gradient_accumulation_steps, 3);
    EXPECT_EQ(options.max_grad_norm, 0.25);
    EXPECT_EQ(options.checkpoint_every, 11);
    EXPECT_EQ(options.checkpoints_kept, 4);
    EXPECT_EQ(options.update.beta1, strata::AdamW::Options{}.beta1);
    EXPECT_EQ(options.update.beta2, 0.95);
    EXPECT_EQ(options.update.epsilon, 1e-6);
}

TEST(OptionsFromConfig, EpochsBecomeStepsRoundedUp) {
    strata::config::TrainerConfig config;
    config.max_train_steps = 0;
    config.num_train_epochs = 3;
    config.gradient_accumulation_steps = 2;
    EXPECT_EQ(options_from<strata::AdamW>(config, 5).max_steps, 8);
}

TEST(OptionsFromConfig, MoreEpochsThanCanBeCountedAreRefused) {
    strata::config::TrainerConfig config;
    config.max_train_steps = 0;
    config.gradient_accumulation_steps = 2;
    config.num_train_epochs = std::numeric_limits<std::int64_t>::max() / 5 + 1;
    const auto error = thrown_by([&] { (void)options_from<strata::AdamW>(config, 5); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("num_train_epochs")) << error.message;
    // The largest number of micro-batches there is, odd, rounded up without leaving its range.
    config.num_train_epochs = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(options_from<strata::AdamW>(config, 1).max_steps, std::numeric_limits<std::int64_t>::max() / 2 + 1);
}

TEST(OptionsFromConfig, AWarmUpLongerThanTheEpochsTakeIsRefused) {
    strata::config::TrainerConfig config;
    config.max_train_steps = 0;
    config.num_train_epochs = 2;
    config.gradient_accumulation_steps = 1;
    config.lr_warmup_steps = 10;
    EXPECT_EQ(options_from<strata::AdamW>(config, 5).schedule.warmup_steps, 10);
    config.lr_warmup_steps = 11;
    const auto error = thrown_by([&] { (void)options_from<strata::AdamW>(config, 5); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("'lr_warmup_steps' is 11, above the 10 steps of 'num_train_epochs'")) << error.message;
}

TEST(OptionsFromConfig, ARuleWithoutEpsilonIgnoresIt) {
    strata::config::TrainerConfig config;
    config.max_train_steps = 1;
    config.optimizer_weight_decay = 0.3;
    const auto options = options_from<strata::Lion>(config, 5);
    EXPECT_EQ(options.update.weight_decay, 0.3);
    EXPECT_EQ(options.update.beta2, strata::Lion::Options{}.beta2);
}

}  // namespace
