#include <gtest/gtest.h>

#include <strata/config/trainer_config.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::TemporaryJson;
using strata_test::thrown_by;

TrainerConfig load(const char* json) { return load_trainer_config(TemporaryJson{json}.path()); }
strata_test::Thrown refused(const char* json) {
    return thrown_by([&] { (void)load(json); });
}

TEST(TrainerConfig, AnEmptyFileTrainsOneEpochWithTheDefaults) {
    const TrainerConfig config = load("{}");
    EXPECT_EQ(config.num_train_epochs, 1);
    EXPECT_EQ(config.max_train_steps, 0);
    EXPECT_EQ(config.train_batch_size, 4);
    EXPECT_FALSE(config.optimizer_beta1.has_value());
}

TEST(TrainerConfig, ReadsKeysWithAndWithoutDashes) {
    const TrainerConfig config = load(R"({"--max_train_steps": 100, "learning_rate": "3e-4", "lr_scheduler": "cosine",
        "adam_beta1": 0.9, "adam_beta2": 0.95, "validation_prompts": ["a red star", "a blue car"], "num_train_epochs": 0})");
    EXPECT_EQ(config.max_train_steps, 100);
    EXPECT_EQ(config.num_train_epochs, 0);
    EXPECT_EQ(config.learning_rate, 3e-4);
    EXPECT_EQ(config.lr_scheduler, LrScheduler::cosine);
    EXPECT_EQ(config.optimizer_beta2, 0.95);
    EXPECT_EQ(config.validation_prompts.size(), 2U);
}

TEST(TrainerConfig, ContradictionsAreRefused) {
    for (const char* json : {R"({"max_train_steps": 10, "num_train_epochs": 1})", R"({"train_batch_size": 0})",
                             R"({"gradient_accumulation_steps": 0})", R"({"train_batch_size": 2.5})", R"({"seed": -1})",
                             R"({"adam_beta1": 0.9})", R"({"adam_beta1": 0.9, "optimizer_beta1": 0.9, "adam_beta2": 0.9})",
                             R"({"learning_rate": 1e-4, "lr_end": 1e-3})", R"({"learning_rate": -1})",
                             R"({"aspect_bucket_alignment": 48})", R"({"max_train_steps": 5, "lr_warmup_steps": 6})",
                             R"({"seed": 1, "--seed": 1})", R"({"caption_dropout_probability": 1.5})", "[]"})
        EXPECT_EQ(refused(json).code, Errc::bad_value) << json;
}

TEST(TrainerConfig, TypingErrorsAndForeignKeysAreToldApart) {
    const auto typo = refused(R"({"--learing_rate": 1})");
    EXPECT_EQ(typo.code, Errc::unknown_key);
    EXPECT_TRUE(typo.says("did you mean 'learning_rate'")) << typo.message;
    EXPECT_EQ(refused(R"({"optimizer": "adamw_bf16"})").code, Errc::unsupported_key);
    EXPECT_TRUE(refused(R"({"optimizer": "adamw_bf16"})").says("Optimizer<AdamW>"));
    EXPECT_EQ(refused(R"({"use_ema": true})").code, Errc::unsupported_key);
    EXPECT_EQ(refused(R"({"lr_scheduler": "polynomal"})").code, Errc::bad_value);
}

TEST(TrainerConfig, ReadsHowBucketsAreChosen) {
    EXPECT_EQ(load("{}").bucket_mode, BucketMode::nearest);
    EXPECT_EQ(load(R"({"bucket_mode": "default"})").bucket_mode, BucketMode::nearest);
    const TrainerConfig config = load(R"({"bucket_mode": "simpletuner", "--aspect_bucket_rounding": 3})");
    EXPECT_EQ(config.bucket_mode, BucketMode::simpletuner);
    EXPECT_EQ(config.aspect_bucket_rounding, 3);
    EXPECT_EQ(refused(R"({"bucket_mode": "kohya"})").code, Errc::bad_value);
    EXPECT_EQ(refused(R"({"aspect_bucket_rounding": 0})").code, Errc::bad_value);
    EXPECT_TRUE(refused(R"({"vae_cache_ondemand": true})").says("in the dataset list"));
}

TEST(TrainerConfig, ReadsTheShapeOfASchedule) {
    const TrainerConfig config = load(R"({"lr_scheduler": "polynomial", "lr_power": 2, "lr_num_cycles": 3})");
    EXPECT_EQ(config.lr_scheduler, LrScheduler::polynomial);
    EXPECT_EQ(config.lr_power, 2.0);
    EXPECT_EQ(config.lr_num_cycles, 3);
    EXPECT_EQ(load(R"({"lr_scheduler": "sine"})").lr_scheduler, LrScheduler::sine);
    EXPECT_EQ(load(R"({"lr_scheduler": "cosine_with_restarts"})").lr_scheduler, LrScheduler::cosine_with_restarts);
    EXPECT_EQ(refused(R"({"lr_power": 0})").code, Errc::bad_value);
}

}  // namespace
