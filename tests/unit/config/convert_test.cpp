#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/config/convert.hpp>
#include <strata/config/trainer_config.hpp>

#include "read_intent.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::accelerate;
using strata_test::deepspeed;
using strata_test::thrown_by;

std::optional<ConfigFormat> format(const std::string& text) { return format_of(parse_yaml(text, "f").root); }

TEST(Convert, AFormatIsKnownByItsKeys) {
    EXPECT_EQ(format("{distributed_type: NO}"), ConfigFormat::accelerate);
    EXPECT_EQ(format("{zero_optimization: {stage: 1}}"), ConfigFormat::deepspeed);
    EXPECT_EQ(format("{args: 1, deepspeed: {fp16: {}}}"), ConfigFormat::deepspeed);
    EXPECT_EQ(format("{--learning_rate: 1e-4, --train_batch_size: 2, gradient_accumulation_steps: 1}"),
              ConfigFormat::trainer);
    EXPECT_EQ(format("[{id: a}]"), ConfigFormat::datasets);
    EXPECT_EQ(format("{nothing: 1}"), std::nullopt);
    EXPECT_EQ(format("{zero_optimisation: {stage: 2}}"), ConfigFormat::deepspeed) << "a typing error";
    // What ranks need, which a trainer's configuration has too: that one is never a YAML.
    const std::string ranks = "{machine_rank: 0, main_process_ip: 10.0.0.1, main_process_port: 29500}";
    EXPECT_EQ(format_of(parse_yaml(ranks, "ranks.yaml").root), ConfigFormat::accelerate);
    EXPECT_EQ(format(ranks), ConfigFormat::trainer);
    EXPECT_EQ(format("{machine_rank: 0, main_training_function: main}"), ConfigFormat::accelerate);
    EXPECT_EQ(format("{mixed_precision: bf16}"), ConfigFormat::trainer);
    EXPECT_EQ(format_named("deepspeed"), ConfigFormat::deepspeed);
    EXPECT_EQ(format_named("toml"), std::nullopt);
}

TEST(Convert, DeepSpeedAndAccelerateSayTheSame) {
    const auto first =
        deepspeed(R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/a"},
        "offload_param": {"device": "cpu"}}, "gradient_accumulation_steps": 4, "gradient_clipping": 0.5, "bf16": {"enabled": true}})");
    const auto second = accelerate(convert(first.intent, ConfigFormat::accelerate));
    EXPECT_EQ(second.refusal(), "");
    EXPECT_EQ(first.intent, second.intent) << convert(first.intent, ConfigFormat::accelerate);
    const auto third = deepspeed(convert(second.intent, ConfigFormat::deepspeed));
    EXPECT_EQ(third.intent, second.intent);
}

TEST(Convert, AScheduleByShapeKeepsItsNameItsStepsAndItsEnd) {
    for (const char* scheduler :
         {R"({"type": "linear", "params": {"total_num_steps": 100, "warmup_num_steps": 10}})",
          R"({"type": "cosine", "params": {"total_num_steps": 100, "warmup_num_steps": 10, "eta_min": 1e-6}})",
          R"({"type": "CosineAnnealingLR", "params": {"T_max": 100, "eta_min": 1e-6}})",
          R"({"type": "polynomial", "params": {"total_num_steps": 100}})"}) {
        const auto first = deepspeed(std::string{R"({"scheduler": )"} + scheduler + "}");
        const std::string text = convert(first.intent, ConfigFormat::deepspeed);
        const auto second = deepspeed(text);
        EXPECT_EQ(second.refusal(), "");
        EXPECT_EQ(first.intent, second.intent) << text;
    }
}

TEST(Convert, WhatIsKnownByNowIsNotLeftToAuto) {
    const auto base = deepspeed(R"({"gradient_clipping": "auto", "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"})");
    Intent above;
    above.set("engine.max_grad_norm", 0.5);
    above.composition.precision = FormatName::bf16;
    above.batch.micro = 4;
    const auto json = nlohmann::json::parse(convert(overlay(base.intent, above), ConfigFormat::deepspeed));
    EXPECT_EQ(json.at("gradient_clipping"), 0.5);
    EXPECT_EQ(json.at("bf16").at("enabled"), true);
    EXPECT_EQ(json.at("train_micro_batch_size_per_gpu"), 4);
    EXPECT_EQ(json.at("gradient_accumulation_steps"), "auto");
}

TEST(Convert, FsdpBecomesDeepSpeed) {
    const auto read = accelerate(
        "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP}\n");
    const auto json = nlohmann::json::parse(convert(read.intent, ConfigFormat::deepspeed));
    EXPECT_EQ(json, nlohmann::json::parse(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})"));
}

TEST(Convert, OptionsHaveTheKeysOfOurOwnConfiguration) {
    const auto read =
        deepspeed(R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "gradient_clipping": 0.5,
        "optimizer": {"type": "Lion", "params": {"lr": 2e-5, "betas": [0.9, 0.95]}}, "zero_optimization": {"stage": 1}})");
    const std::string text = convert(read.intent, ConfigFormat::trainer);
    auto json = nlohmann::json::parse(text);
    EXPECT_EQ(json["deepspeed_config"]["zero_optimization"]["stage"], 1);
    EXPECT_EQ(json["optimizer"], "lion");
    json.erase("deepspeed_config");
    const TrainerConfig config = load_trainer_config(strata_test::TemporaryJson{json.dump()}.path());
    EXPECT_EQ(config.train_batch_size, 2);
    EXPECT_EQ(config.options.engine.gradient_accumulation_steps, 4);
    EXPECT_EQ(config.options.engine.max_grad_norm, 0.5);
    EXPECT_EQ(config.options.schedule.lr, 2e-5);
    EXPECT_EQ(config.optimizer.find("optimizer_beta2")->json, "0.95");
    for (const ConfigFormat none : {ConfigFormat::datasets, ConfigFormat::launch})
        EXPECT_EQ(thrown_by([&] { (void)convert({}, none); }).code, Errc::bad_argument);
}

TEST(Convert, OurOwnConfigurationSaysWhereRanksRunAndHowManySamplesAStepHas) {
    const auto read = accelerate(
        "distributed_type: MULTI_GPU\nnum_processes: 4\nnum_machines: 2\nmachine_rank: 1\nmain_process_ip: 10.0.0.1\n"
        "main_process_port: 29500\nmixed_precision: bf16\n");
    Intent intent = read.intent;
    intent.batch = {.global = 64, .micro = 2};
    intent.set("engine.gradient_accumulation_steps", std::int64_t{8});
    intent.composition.moment = MomentName::after_backward;
    intent.composition.gradients = KeptOn{};
    const strata_test::TemporaryJson file{convert(intent, ConfigFormat::trainer)};
    const TrainerConfig config = load_trainer_config(file.path());
    EXPECT_EQ(config.reading.intent.launch, intent.launch);
    EXPECT_EQ(config.reading.intent.batch, intent.batch);
    EXPECT_EQ(config.reading.intent.composition, intent.composition);
}

TEST(Convert, FilesAreReadByWhatTheyHold) {
    Findings findings;
    EXPECT_EQ(
        policies(load_intent(strata_test::TemporaryJson{R"({"zero_optimization": {"stage": 2}})"}.path(), findings)
                     .composition),
        "ZeroStage<2>");
    EXPECT_EQ(
        policies(
            load_intent(strata_test::TemporaryJson{R"({"distributed_type": "FSDP"})"}.path(), findings).composition),
        "ZeroStage<3>");
    EXPECT_NE(thrown_by([&] {
                  (void)load_intent(strata_test::TemporaryJson{"[]"}.path(), findings);
              }).message.find("of the format datasets"),
              std::string::npos);
}

TEST(Convert, AnIntentThatMissesAFileIsRefused) {
    const strata_test::TemporaryJson file{
        R"({"distributed_type": "DEEPSPEED", "deepspeed_config": {"deepspeed_config_file": "not_here.json"}})"};
    Findings findings;
    (void)load_intent(file.path(), findings);
    ASSERT_EQ(findings.refused(), 1U) << "what it would compose is not known";
    EXPECT_EQ(findings.of("/deepspeed_config/deepspeed_config_file")->code, Errc::bad_reference);
}

}  // namespace
