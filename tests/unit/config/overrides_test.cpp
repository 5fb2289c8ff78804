// What a command line says in place of a file: the same checks, and the flag's name in the messages.

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/sample_size.hpp>
#include <strata/config/trainer_config.hpp>

#include "temporary_json.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::TemporaryJson;
using strata_test::thrown_by;

TrainerConfig load(const char* json, const Overrides& overrides) {
    return load_trainer_config(TemporaryJson{json}.path(), overrides);
}
strata_test::Thrown refused(const Overrides& overrides, const char* json = "{}") {
    return thrown_by([&] { (void)load(json, overrides); });
}

TEST(Overrides, GoBeforeTheFile) {
    const TrainerConfig config = load(
        R"({"learning_rate": 1e-3, "use_ema": true, "lr_scheduler": "cosine", "output_dir": "a", "seed": 7, "adam_beta1": 0.5,
                 "adam_beta2": 0.6, "validation_prompts": ["of the file"]})",
        {{"learning_rate", {"1e-4"}},
         {"use_ema", {"false"}},
         {"lr_scheduler", {"linear"}},
         {"output_dir", {"b"}},
         {"optimizer_beta1", {"0.9"}},
         {"validation_prompts", {"one, with a comma", "[two]"}}});
    EXPECT_EQ(config.options.schedule.lr, 1e-4);
    EXPECT_EQ(config.use_ema, false);
    EXPECT_EQ(config.options.schedule.shape, strata::ScheduleShape::linear);
    EXPECT_EQ(config.output_dir, "b");
    EXPECT_EQ(config.options.seed, 7U);
    ASSERT_NE(config.optimizer.find("optimizer_beta1"), nullptr);
    EXPECT_EQ(config.optimizer.find("optimizer_beta1")->json, "\"0.9\"") << "the file has it under its other name";
    ASSERT_NE(config.optimizer.find("optimizer_beta2"), nullptr);
    EXPECT_EQ(config.optimizer.find("optimizer_beta2")->json, "0.6");
    EXPECT_EQ(config.validation_prompts, (std::vector<std::string>{"one, with a comma", "[two]"}));
}

TEST(Overrides, GoBeforeTheFilesThatAConfigurationNames) {
    const char* json =
        R"({"learning_rate": 1e-3, "deepspeed_config": {"gradient_clipping": 0.5, "bf16": {"enabled": true},
        "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 4,
        "optimizer": {"type": "AdamW", "params": {"lr": 5e-4, "betas": [0.8, 0.9], "eps": 1e-7}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 5e-4, "warmup_num_steps": 7}}}})";
    const auto beta2 = [](const TrainerConfig& config) -> std::string {
        const auto* const given = config.optimizer.find("optimizer_beta2");
        return given == nullptr ? "none" : given->json;
    };
    const TrainerConfig file = load(json, {});
    EXPECT_EQ(file.options.engine.max_grad_norm, 0.5);
    EXPECT_EQ(file.options.schedule.custom(100), 5e-4) << "DeepSpeed's WarmupLR, behind its warm-up";
    EXPECT_EQ(beta2(file), "0.9");
    const TrainerConfig flags = load(json, {{"max_grad_norm", {"2"}},
                                            {"train_batch_size", {"8"}},
                                            {"optimizer_beta1", {"0.7"}},
                                            {"optimizer_beta2", {"0.75"}},
                                            {"learning_rate", {"2e-4"}}});
    EXPECT_EQ(flags.options.engine.max_grad_norm, 2.0);
    EXPECT_EQ(flags.train_batch_size, 8);
    EXPECT_EQ(beta2(flags), "\"0.75\"");
    EXPECT_EQ(flags.options.schedule.custom(100), 2e-4) << "the schedule's highest rate is the flag's";
    EXPECT_EQ(flags.options.engine.gradient_accumulation_steps, 4);
    const TrainerConfig shape = load(json, {{"lr_warmup_steps", {"3"}}, {"lr_scheduler", {"constant_with_warmup"}}});
    EXPECT_EQ(shape.options.schedule.warmup_steps, 3);
    EXPECT_FALSE(shape.options.schedule.custom) << "of the file's schedule nothing is left";
}

TEST(Overrides, AListMayBeJson) {
    EXPECT_EQ(load("{}", {{"validation_prompts", {R"(["a \"b\"", "c"])"}}}).validation_prompts,
              (std::vector<std::string>{"a \"b\"", "c"}));
    EXPECT_TRUE(load(R"({"validation_prompts": ["x"]})", {{"validation_prompts", {"[]"}}}).validation_prompts.empty());
    const auto broken = refused({{"validation_prompts", {"[\"a\""}}});
    EXPECT_EQ(broken.code, Errc::unreadable_config);
    EXPECT_TRUE(broken.says("--validation_prompts:1:5: is no JSON")) << broken.message;
    EXPECT_TRUE(refused({{"validation_prompts", {"[1]"}}}).says("--validation_prompts[0] is 1, not text"));
}

TEST(Overrides, NullIsTheDefaultAndTextIsText) {
    const TrainerConfig config =
        load(R"({"use_ema": true, "seed": 7})", {{"use_ema", {"null"}}, {"seed", {"null"}}, {"output_dir", {"null"}}});
    EXPECT_FALSE(config.use_ema.has_value());
    EXPECT_EQ(config.options.seed, 42U);
    EXPECT_EQ(config.output_dir, "null");
}

TEST(Overrides, WhatTheFileSaysOfTheKeyIsNotLookedAt) {
    EXPECT_EQ(load(R"({"seed": "seven"})", {{"seed", {"8"}}}).options.seed, 8U);
    EXPECT_EQ(refused({{"seed", {"8"}}}, R"({"sede": 7})").code, Errc::unknown_key)
        << "but whether there is such a key";
}

TEST(Overrides, AreCheckedAsTheFileIsAndNamedByTheirFlag) {
    struct Case {
        Override given;
        std::string says;
    };
    const std::vector<Case> cases{
        {{"learning_rate", {"fast"}}, "[ST2103] --learning_rate is 'fast', not a number. Fix: write a number."},
        {{"learning_rate", {"11"}},
         "[ST2103] --learning_rate is '11', out of its range. Fix: use a number from 0 to 10."},
        {{"learning_rate", {"nan"}}, "[ST2103] --learning_rate is 'nan', not a number. Fix: write a number."},
        {{"seed", {"1.5"}}, "[ST2103] --seed is '1.5', not a whole number. Fix: write a whole number."},
        {{"seed", {""}}, "[ST2103] --seed is '', not a whole number. Fix: write a whole number."},
        {{"use_ema", {"yes"}}, "[ST2103] --use_ema is 'yes', not true or false. Fix: write true or false."},
        {{"lr_scheduler", {"cosin"}}, "[ST2103] --lr_scheduler is 'cosin', which is none of its values."},
        {{"adam_beta1", {"2"}}, "[ST2103] --adam_beta1 is '2', out of its range."},
        {{"output_dir", {"{env:STRATA_NOBODY_SETS_THIS}"}}, "--output_dir"},
    };
    for (const Case& one : cases) {
        const auto error = refused({one.given});
        EXPECT_EQ(error.code, Errc::bad_value) << one.says;
        EXPECT_TRUE(error.says(one.says)) << error.message;
    }
}

TEST(Overrides, ContradictionsNameTheFlagAndTheFileThatHasTheOtherKey) {
    auto error = refused({{"num_train_epochs", {"3"}}}, R"({"max_train_steps": 10})");
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says(": 'max_train_steps' and --num_train_epochs are both given")) << error.message;
    EXPECT_FALSE(error.says("[ST2103] 'max")) << "the file is named: " << error.message;
    error = refused({{"lr_end", {"2"}}, {"learning_rate", {"1"}}});
    EXPECT_TRUE(error.says("[ST2103] --lr_end is above --learning_rate.")) << error.message;
    error = refused({{"aspect_bucket_alignment", {"48"}}});
    EXPECT_TRUE(error.says("[ST2103] --aspect_bucket_alignment is 48.")) << error.message;
    error = refused({{"adam_beta1", {"0.5"}}, {"optimizer_beta1", {"0.5"}}});
    EXPECT_TRUE(error.says("--adam_beta1 and --optimizer_beta1 are the same key")) << error.message;
}

struct Own {
    std::int64_t count = 3;
    std::string name;
    static const Schema<Own>& schema() {
        static const auto keys = Schema<Own>{}
                                     .integer("count", &Own::count, {1, 9}, "A count")
                                     .text("name", &Own::name, "A name")
                                     .required();
        return keys;
    }
};
static_assert(strata::config::Settings<Own> && strata::config::Settings<TrainerConfig>);

TEST(Overrides, DecideSettingsThatHaveNoFile) {
    EXPECT_EQ(Own::schema().read(Overrides{{"name", {"x"}}}).count, 3);
    EXPECT_EQ(Own::schema().read(Overrides{{"name", {"x"}}, {"count", {"5"}}}).count, 5);
    const auto missing = thrown_by([&] { (void)Own::schema().read(Overrides{}); });
    EXPECT_EQ(missing.message, "[ST2103] --name is missing. Fix: add it: A name.");
}

TEST(Overrides, SizesOfSamplesAreWordsOrAList) {
    using Sizes = std::vector<SampleSize>;
    EXPECT_EQ(load("{}", {{"validation_resolution", {"64"}}}).validation_resolution, (Sizes{{64, 64}}));
    EXPECT_EQ(load("{}", {{"validation_resolution", {"64x32,48"}}}).validation_resolution, (Sizes{{64, 32}, {48, 48}}));
    EXPECT_EQ(load("{}", {{"validation_resolution", {"[64, \"64x32\"]"}}}).validation_resolution,
              (Sizes{{64, 64}, {64, 32}}));
    EXPECT_TRUE(refused({{"validation_resolution", {"tall"}}}).says("--validation_resolution is 'tall'"));
}

}  // namespace
