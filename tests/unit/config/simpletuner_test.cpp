// SimpleTuner's configurations: every key acted on, mapped, named or refused; and all real files that are at hand.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <strata/config/any_config.hpp>
#include <strata/config/sample_size.hpp>
#include <strata/config/simpletuner.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/config/trainer_writer.hpp>

#include "temporary_json.hpp"

namespace {

namespace fs = std::filesystem;
using namespace strata::config;
using strata::Errc;

TrainerConfig look(std::string_view json, const std::string& name = "config.json") {
    return look_at_trainer_config(parse_json(json, name, JsonDialect::relaxed));
}
/// The first finding of a key, which must be there.
Finding of(const TrainerConfig& config, std::string_view key) {
    for (const Finding& one : config.reading.findings.all())
        if (one.key == key) return one;
    ADD_FAILURE() << "nothing is said of " << key;
    return {};
}

TEST(Simpletuner, AUsualFileIsReadInOneRun) {
    const TrainerConfig config = look(R"({
        "--model_type": "full", "--model_family": "flux", "--optimizer": "adamw_bf16", "--mixed_precision": "bf16",
        "--gradient_checkpointing": "true", "--gradient_checkpointing_interval": 2, "--learning_rate": "1e-4",
        "--checkpointing_steps": 250, "--validation_steps": 50, "--validation_prompt": "a cat", "--resume_from_checkpoint": "latest",
        "--validation_resolution": "1024x1024", "--report_to": "wandb", "--push_to_hub": "true", "--vae_batch_size": 4,
        "--max_train_steps": 100, "--num_train_epochs": 0, "--train_batch_size": 2, "--use_ema": true, "--controlnet": false})");
    EXPECT_EQ(config.reading.findings.refused(), 0U) << config.reading.findings.table();
    EXPECT_EQ(policies(config.reading.intent.composition), "Precision<PureBf16>, Recompute<EveryOther<2>>, Ema<Cpu>");
    EXPECT_EQ(config.options.checkpoint_every, 250);
    EXPECT_EQ(config.validation_step_interval, 50);
    EXPECT_EQ(config.validation_prompts, (std::vector<std::string>{"a cat"}));
    EXPECT_EQ(config.validation_resolution, (std::vector<SampleSize>{{1024, 1024}}));
    EXPECT_EQ(config.reading.model_family, "flux");
    EXPECT_EQ(config.reading.intent.batch.micro, 2);
    EXPECT_EQ(config.reading.intent.number("schedule.lr"), 1e-4);
    EXPECT_EQ(of(config, "--report_to").effect, Effect::none);
    EXPECT_TRUE(of(config, "--report_to").warns);
    EXPECT_FALSE(of(config, "--resume_from_checkpoint").warns) << "it asks for what happens anyway";
    EXPECT_EQ(of(config, "--train_batch_size").effect, Effect::acts);
}

TEST(Simpletuner, GradientsAreReleasedInBackwardWhereNothingNeedsThemAll) {
    const auto moment = [](const std::string& more) {
        return look(R"({"optimizer_release_gradients": true, )" + more + "}");
    };
    const TrainerConfig taken = moment(R"("max_grad_norm": 0)");
    EXPECT_EQ(taken.reading.intent.composition.moment, MomentName::in_backward);
    EXPECT_EQ(of(taken, "optimizer_release_gradients").to, "Update<InBackward>");
    EXPECT_EQ(moment(R"("max_grad_norm": 1, "grad_clip_method": "value")").reading.intent.composition.moment,
              MomentName::in_backward);
    for (const auto& [more, says] :
         {std::pair{R"("max_grad_norm": 1)", "the norm of all gradients"},
          std::pair{R"("max_grad_norm": 0, "gradient_accumulation_steps": 4)", "a step has 4 micro-batches"},
          std::pair{R"("max_grad_norm": 0, "mixed_precision": "fp16")", "fp16 scales the loss"},
          std::pair{R"("max_grad_norm": 0, "optimizer": "lamb")", "norms of whole parameters"}}) {
        const TrainerConfig config = moment(more);
        EXPECT_EQ(config.reading.findings.refused(), 0U);
        EXPECT_FALSE(config.reading.intent.composition.moment) << more;
        EXPECT_TRUE(of(config, "optimizer_release_gradients").warns);
        EXPECT_NE(of(config, "optimizer_release_gradients").words.find(says), std::string::npos)
            << of(config, "optimizer_release_gradients").words;
    }
    EXPECT_EQ(look(R"({"optimizer_release_gradients": false})").reading.intent.composition.moment,
              MomentName::after_backward);
}

TEST(Simpletuner, GradientsFollowStateIntoHostMemory) {
    const std::string key = R"("optimizer_offload_gradients": true)";
    const TrainerConfig taken =
        look("{" + key +
             R"(, "deepspeed_config": {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}})");
    EXPECT_EQ(policies(taken.reading.intent.composition),
              "ZeroStage<2>, OffloadTarget<Cpu>, OffloadTarget<Cpu, Gradients>");
    const TrainerConfig plain = look("{" + key + "}");
    EXPECT_FALSE(plain.reading.intent.composition.gradients);
    EXPECT_TRUE(of(plain, "optimizer_offload_gradients").warns);
    const TrainerConfig both = look(
        "{" + key +
        R"(, "optimizer_release_gradients": true, "max_grad_norm": 0, "fsdp_enable": true, "fsdp_cpu_offload": true})");
    EXPECT_EQ(both.reading.intent.composition.moment, MomentName::in_backward);
    EXPECT_NE(of(both, "optimizer_offload_gradients").words.find("leaves no gradients"), std::string::npos);
}

TEST(Simpletuner, NumbersThatNoComputerKeepsAreRefusedWhereverTheyStand) {
    const TrainerConfig config = look(
        R"({"seed": 1e400, "learning_rate": 1e999, "checkpointing_steps": -1e400, "optimizer_config": {"eps": 1e400}, "lr_end": [1, 1e400]})");
    EXPECT_GE(config.reading.findings.refused(), 5U) << config.reading.findings.table();
    for (const char* key : {"seed", "learning_rate", "checkpointing_steps", "optimizer_config", "lr_end"})
        EXPECT_EQ(of(config, key).effect, Effect::refused) << key;
}

TEST(Simpletuner, TwoFilesThatSayDifferentThingsAreAWarningThatSaysWhichCounts) {
    const strata_test::TemporaryJson yaml{
        R"({"distributed_type": "DEEPSPEED", "mixed_precision": "bf16", "deepspeed_config": {"zero_stage": 2, "gradient_clipping": 1.0}})"};
    const std::string named = R"("accelerate_config": ")" + yaml.path().string() + "\"";
    const TrainerConfig config =
        look("{" + named + R"(, "deepspeed_config": {"zero_optimization": {"stage": 3}, "gradient_clipping": 0.5}})");
    EXPECT_EQ(config.reading.intent.composition.stage, 3);
    EXPECT_EQ(of(config, "accelerate_config").words,
              "read as Accelerate's own, and `deepspeed_config` goes before it: ZeroStage<3> and not ZeroStage<2>; "
              "engine.max_grad_norm = 0.5 and not 1");
    EXPECT_TRUE(of(config, "accelerate_config").warns);
    const TrainerConfig same = look("{" + named + R"(, "deepspeed_config": {"zero_optimization": {"stage": 2}}})");
    EXPECT_FALSE(of(same, "accelerate_config").warns);

    strata_test::TemporaryFolder folder;
    const auto write = [&](const char* name, const char* text) { std::ofstream{folder.path() / name} << text; };
    write("config.json", R"({"model_type": "full", "mixed_precision": "fp16"})");
    write("default_config.yaml",
          "distributed_type: DEEPSPEED\nmixed_precision: bf16\ndeepspeed_config: {zero_stage: 1}\n");
    write("ds_config.json", R"({"zero_optimization": {"stage": 2}})");
    std::string said;
    for (const AnyConfig& file : look_at_configs(folder.path()))
        for (const Finding& one : file.findings.all())
            if (one.key.empty() && one.warns) said += file.file.filename().string() + ": " + one.words + "\n";
    EXPECT_EQ(said,
              "config.json: `default_config.yaml` beside it goes before it: Precision<Bf16> and not Precision<Fp16>\n"
              "default_config.yaml: `ds_config.json` beside it goes before it: ZeroStage<2> and not ZeroStage<1>\n");
    write("config.json", R"({"model_type": "full", "mixed_precision": "bf16", "deepspeed_config": "zero3"})");
    std::size_t warned = 0;
    for (const AnyConfig& file : look_at_configs(folder.path()))
        for (const Finding& one : file.findings.all())
            warned += one.words.find("ds_config.json") != std::string::npos ? 1 : 0;
    EXPECT_EQ(warned, 0U) << "what config.json says itself counts";
}

TEST(Simpletuner, AnErrorIsOnlyWhatWouldMakeAnotherResult) {
    for (const char* json :
         {R"({"model_type": "deepfloyd-lora"})", R"({"controlnet": true})", R"({"use_soft_min_snr": true})",
          R"({"tread_config": {"routes": []}})", R"({"loss_type": "huber"})", R"({"distillation_method": "lcm"})",
          R"({"resume_from_checkpoint": "checkpoint-10"})", R"({"lr_scale": true})", R"({"mixed_precision": "fp8"})",
          R"({"optimizer": "prodigy"})", R"({"train_text_encoder": "true"})", R"({"model_family": "wan"})"})
        EXPECT_EQ(look(json).reading.findings.refused(), 1U) << json;
    for (const char* json : {R"({"model_type": "full"})", R"({"model_type": "lora"})", R"({"controlnet": "false"})",
                             R"({"snr_gamma": 5})", R"({"tread_config": null})", R"({"loss_type": "l2"})",
                             R"({"distillation_method": ""})", R"({"lora_rank": 16})", R"({"push_to_hub": true})",
                             R"({"minimax_h3_anything": 3})", R"({"validation_new_thing": 1})", R"({"_comment": "x"})"})
        EXPECT_EQ(look(json).reading.findings.refused(), 0U) << json;
}

TEST(Simpletuner, KeysOfTheModelAndItsObjectiveAreRead) {
    const TrainerConfig flux =
        look(R"({"--model_family": "flux", "model_flavour": "schnell", "pretrained_model_name_or_path": "m",
        "vae_path": "v", "flux_schedule_shift": 3, "flow_sigmoid_scale": 2, "flux_guidance_mode": "random-range",
        "flux_guidance_max": 5, "tokenizer_max_length": 77, "offset_noise": true, "vae_dtype": "default"})");
    EXPECT_EQ(flux.reading.findings.refused(), 0U);
    EXPECT_EQ(flux.model.kind(), ModelFamily::flux);
    EXPECT_EQ(flux.model.flavour, "schnell");
    EXPECT_EQ(flux.model.path, "m");
    EXPECT_EQ(flux.model.vae, "v");
    EXPECT_EQ(flux.model.flow_schedule_shift, 3);
    EXPECT_EQ(flux.model.flow_sigmoid_scale, 2);
    EXPECT_EQ(flux.model.flux_guidance_mode, FluxGuidanceMode::random_range);
    EXPECT_EQ(flux.model.flux_guidance_max, 5);
    EXPECT_EQ(flux.model.tokenizer_max_length, 77);
    EXPECT_TRUE(flux.model.offset_noise);
    EXPECT_FALSE(flux.model.prediction_type);
    const TrainerConfig sd = look(
        R"({"model_family": "sd1x", "snr_gamma": 5, "prediction_type": "v_prediction", "rescale_betas_zero_snr": "true"})");
    EXPECT_EQ(sd.model.kind(), ModelFamily::sd15);
    EXPECT_EQ(sd.model.snr_gamma, 5);
    EXPECT_EQ(sd.model.prediction_type, PredictionType::v_prediction);
    EXPECT_EQ(sd.model.rescale_betas_zero_snr, true);
    EXPECT_EQ(look(R"({"vae_dtype": "fp16"})").reading.findings.refused(), 1U) << "SDXL's overflows";
}

TEST(Simpletuner, TheModelIsAFlagOfEveryProgram) {
    for (const char* key : {"model_family", "model_flavour", "pretrained_model_name_or_path"})
        EXPECT_TRUE(std::any_of(trainer_schema().keys().begin(), trainer_schema().keys().end(),
                                [&](const KeyInfo& info) { return info.key == key; }))
            << key;
    const Document file =
        parse_json(R"({"model_family": "flux", "pretrained_model_name_or_path": "m"})", "c.json", JsonDialect::strict);
    const TrainerConfig other =
        look_at_trainer_config(file, {{"model_family", {"sdxl"}}, {"pretrained_model_name_or_path", {"null"}}});
    EXPECT_EQ(other.model.kind(), ModelFamily::sdxl);
    EXPECT_EQ(other.model.path, "");
    EXPECT_EQ(other.reading.model_family, "sdxl");
    EXPECT_EQ(look(R"({"model_family": "sdxl", "offset_noise": true, "noise_offset_probability": 0.5})")
                  .model.noise_offset_probability,
              0.5);
}

TEST(Simpletuner, WhatAFamilyDoesNothingWithIsSaid) {
    const TrainerConfig flux = look(R"({"model_family": "flux", "snr_gamma": 5, "rescale_betas_zero_snr": false})");
    EXPECT_EQ(of(flux, "snr_gamma").effect, Effect::none);
    EXPECT_TRUE(of(flux, "snr_gamma").warns);
    EXPECT_EQ(of(flux, "snr_gamma").words, "flux is trained without it");
    EXPECT_FALSE(of(flux, "rescale_betas_zero_snr").warns) << "it asks for nothing";
    const TrainerConfig sdxl = look(R"({"model_family": "sdxl", "snr_gamma": 5, "flux_schedule_shift": 3})");
    EXPECT_EQ(of(sdxl, "snr_gamma").effect, Effect::acts);
    EXPECT_TRUE(of(sdxl, "flux_schedule_shift").warns);
    const TrainerConfig folder = look(R"({"pretrained_model_name_or_path": "m", "snr_gamma": 5})");
    EXPECT_EQ(of(folder, "snr_gamma").effect, Effect::acts) << "model_index.json will say what it is";
}

TEST(Simpletuner, SpellingsOfOneKeyMayAgreeAndMayNotDiffer) {
    EXPECT_EQ(look(R"({"validation_steps": 5, "validation_step_interval": 5})").reading.findings.refused(), 0U);
    EXPECT_EQ(look(R"({"validation_steps": 5, "validation_step_interval": 6})").reading.findings.refused(), 1U);
    EXPECT_EQ(look(R"({"seed": 5, "--seed": 5})").reading.findings.refused(), 1U);
}

TEST(Simpletuner, OptimizersBecomeRulesAndAreNotGuessed) {
    EXPECT_EQ(look(R"({"optimizer": "optimi-lion"})").reading.intent.composition.rule, RuleName::lion);
    EXPECT_EQ(look(R"({"optimizer": "bnb-adamw8bit"})").reading.intent.composition.rule, RuleName::adamw);
    EXPECT_TRUE(of(look(R"({"optimizer": "bnb-adamw8bit"})"), "optimizer").warns) << "its states take more bytes here";
    const Finding typo = of(look(R"({"optimizer": "adamw_bf61"})"), "optimizer");
    EXPECT_EQ(typo.effect, Effect::refused);
    EXPECT_EQ(typo.fix, "did you mean 'adamw_bf16'");
    const TrainerConfig numbers = look(R"({"optimizer": "optimi-adamw", "optimizer_config": "eps=1e-7, betas=x"})");
    ASSERT_NE(numbers.optimizer.find("optimizer_epsilon"), nullptr);
    EXPECT_EQ(numbers.optimizer.find("optimizer_epsilon")->json, "\"1e-7\"");
    ASSERT_NE(numbers.optimizer.find("optimizer_weight_decay"), nullptr)
        << "SimpleTuner's own default of this one is 0";
    const TrainerConfig twice = look(R"({"adam_weight_decay": 0.5, "optimizer_config": "weight_decay=0.1"})");
    EXPECT_EQ(twice.reading.findings.refused(), 0U);
    EXPECT_EQ(twice.reading.intent.number("engine.update.weight_decay"), 0.1);
}

TEST(Simpletuner, ADeepSpeedConfigurationInsideIsReadInAllItsForms) {
    const strata_test::TemporaryFolder folder;
    const std::string object =
        R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}, "gradient_accumulation_steps": 4})";
    std::ofstream{folder.path() / "ds.json"} << object;
    const std::string quoted = strata::config::detail::quoted(object);
    for (const std::string& form : {object, quoted, "\"" + (folder.path() / "ds.json").string() + "\""}) {
        const TrainerConfig config = look("{\"deepspeed_config\": " + form + ", \"offload_param_path\": \"/nvme\"}");
        EXPECT_EQ(config.reading.findings.refused(), 0U) << form << config.reading.findings.table();
        EXPECT_EQ(config.reading.intent.composition.stage, 2) << form;
        EXPECT_EQ(config.reading.intent.composition.state, KeptOn::all_on(TierName::nvme)) << form;
        EXPECT_EQ(config.options.engine.gradient_accumulation_steps, 4) << form;
        EXPECT_EQ(config.options.engine.tiers.nvme_path, "/nvme") << form;
    }
    EXPECT_EQ(look(R"({"deepspeed_config": "zero3"})").reading.intent.composition.stage, 3);
    EXPECT_EQ(look(R"({"deepspeed_config": 7})").reading.findings.refused(), 1U);
    EXPECT_EQ(look(R"({"deepspeed_config": "{broken"})").reading.findings.refused(), 1U);
    const TrainerConfig absent = look(R"({"deepspeed_config": "nowhere.json"})");
    EXPECT_EQ(absent.reading.intent.missing_files, (std::vector<std::string>{"nowhere.json"}));
    const TrainerConfig wrong = look(R"({"deepspeed_config": {"zero_optimization": {"stage": 7}}})");
    ASSERT_EQ(wrong.reading.findings.refused(), 1U);
    EXPECT_EQ(of(wrong, "deepspeed_config.zero_optimization.stage").pointer,
              "/deepspeed_config/zero_optimization/stage");
}

TEST(Simpletuner, WhatDeepSpeedOverrulesIsAWarningOfTheKey) {
    const TrainerConfig config = look(R"({"mixed_precision": "bf16", "lr_scheduler": "cosine", "train_batch_size": 2,
        "fsdp_enable": true, "optimizer": "adamw", "learning_rate": 1e-4, "max_grad_norm": 1,
        "deepspeed_config": {"fp16": {"enabled": true}, "zero_optimization": {"stage": 2}, "gradient_clipping": 1.0,
            "train_micro_batch_size_per_gpu": 8, "optimizer": {"type": "SGD", "params": {"lr": 0.1}},
            "scheduler": {"type": "WarmupLR"}}})");
    EXPECT_EQ(config.reading.findings.refused(), 0U) << config.reading.findings.table();
    for (const char* key :
         {"mixed_precision", "lr_scheduler", "train_batch_size", "fsdp_enable", "optimizer", "learning_rate"}) {
        const Finding one = of(config, key);
        EXPECT_EQ(one.effect, Effect::none) << key;
        EXPECT_TRUE(one.warns) << key;
        EXPECT_EQ(one.words, "`deepspeed_config` says it") << key;
    }
    EXPECT_EQ(of(config, "max_grad_norm").effect, Effect::acts) << "both say 1";
    EXPECT_EQ(config.reading.intent.composition.precision, FormatName::fp16);
    EXPECT_EQ(config.reading.intent.composition.stage, 2);
    EXPECT_EQ(config.train_batch_size, 8);
    EXPECT_EQ(config.options.schedule.lr, 0.1);
}

TEST(Simpletuner, ANumberThatOptimizerBroughtIsOverruledAndTheRuleIsNot) {
    const TrainerConfig config = look(R"({"optimizer": "optimi-adamw",
        "deepspeed_config": {"optimizer": {"type": "AdamW", "params": {"weight_decay": 0.1}}}})");
    EXPECT_EQ(config.optimizer.find("optimizer_weight_decay")->json, "0.1");
    EXPECT_EQ(of(config, "optimizer").to, "Optimizer<AdamW>");
    EXPECT_EQ(of(config, "deepspeed_config").words, "it goes before `optimizer` for optimizer_weight_decay");
}

TEST(Simpletuner, DefaultsOfDeepSpeedAreNotAskedFor) {
    const TrainerConfig config = look(R"({"learning_rate": 1e-4, "optimizer_momentum": 0.9,
        "deepspeed_config": {"optimizer": {"type": "SGD", "params": {"weight_decay": 0.1}}}})");
    EXPECT_EQ(config.options.schedule.lr, 1e-4) << "nobody wrote DeepSpeed's 1e-3";
    EXPECT_EQ(config.optimizer.find("optimizer_momentum")->json, "0.9");
    EXPECT_EQ(config.optimizer.find("optimizer_weight_decay")->json, "0.1");
    EXPECT_EQ(of(config, "learning_rate").effect, Effect::acts);
    EXPECT_EQ(look(R"({"deepspeed_config": {"optimizer": {"type": "SGD"}}})").options.schedule.lr, 1e-3);
}

TEST(Simpletuner, TruthValuesOfARuleArrive) {
    const TrainerConfig sgd =
        look(R"({"deepspeed_config": {"optimizer": {"type": "SGD", "params": {"momentum": 0.9, "nesterov": true}}}})");
    ASSERT_NE(sgd.optimizer.find("optimizer_nesterov"), nullptr);
    EXPECT_EQ(sgd.optimizer.find("optimizer_nesterov")->json, "true");
    for (const char* json : {R"({"optimizer_nesterov": true})", R"({"optimizer_nesterov": "true"})"}) {
        const TrainerConfig own = look(json);
        const OptionValue* const value = own.reading.intent.find("engine.update.nesterov");
        ASSERT_NE(value, nullptr) << json;
        EXPECT_EQ(value->value, OptionScalar{true}) << json;
    }
    const TrainerConfig twice = look(R"({"adam_beta1": 0.8, "adam_beta2": 0.9,
        "deepspeed_config": {"optimizer": {"type": "AdamW", "params": {"betas": [0.7, 0.95]}}}})");
    ASSERT_NE(twice.optimizer.find("optimizer_beta1"), nullptr);
    EXPECT_EQ(twice.optimizer.find("optimizer_beta1")->json, "0.7");
    EXPECT_EQ(twice.optimizer.all().size(), 4U) << "one key of each number, by whichever name";
    EXPECT_TRUE(of(twice, "adam_beta1").warns);
}

TEST(Simpletuner, DeepSpeedsClippingIsByTheNorm) {
    const TrainerConfig config =
        look(R"({"grad_clip_method": "value", "max_grad_norm": 0.01, "deepspeed_config": {"gradient_clipping": 1.0}})");
    EXPECT_EQ(config.grad_clip_method, GradClipMethod::norm);
    EXPECT_EQ(config.options.engine.max_grad_norm, 1.0);
    EXPECT_EQ(config.reading.intent.number("engine.max_grad_norm"), 1.0);
    EXPECT_EQ(config.reading.intent.find("engine.max_grad_value"), nullptr);
    EXPECT_TRUE(of(config, "grad_clip_method").warns);
    EXPECT_TRUE(of(config, "max_grad_norm").warns);
    EXPECT_EQ(look(R"({"grad_clip_method": "value", "deepspeed_config": "zero2"})").grad_clip_method,
              GradClipMethod::value);
}

TEST(Simpletuner, TheBatchOfAllRanksIsFollowedWhereTheyAreKnown) {
    const auto batch = [](const std::string& keys, const std::string& deepspeed) {
        return look("{" + keys + "\"deepspeed_config\": {" + deepspeed + "}}");
    };
    const TrainerConfig both = batch(R"("num_processes": 4, "train_batch_size": 2, )", R"("train_batch_size": 32)");
    EXPECT_EQ(both.reading.findings.refused(), 0U) << both.reading.findings.table();
    EXPECT_EQ(both.options.engine.gradient_accumulation_steps, 4) << "32 are 2 x 4 x 4 ranks";
    const TrainerConfig alone =
        batch(R"("num_processes": 4, )", R"("train_batch_size": 32, "gradient_accumulation_steps": 2)");
    EXPECT_EQ(alone.train_batch_size, 4);
    EXPECT_EQ(alone.reading.intent.batch.micro, 4);
    EXPECT_EQ(
        batch(R"("num_processes": 4, "train_batch_size": 3, )", R"("train_batch_size": 32)").reading.findings.refused(),
        1U);
    const TrainerConfig unknown = batch("", R"("train_batch_size": 32)");
    EXPECT_EQ(unknown.reading.findings.refused(), 0U);
    EXPECT_TRUE(of(unknown, "deepspeed_config").warns);
}

TEST(Simpletuner, DefaultsThatDifferAreNamed) {
    const TrainerConfig config = look(R"({"model_family": "sdxl", "lr_scheduler": "polynomial"})");
    for (const char* key : {"mixed_precision", "optimizer", "lr_end", "learning_rate"})
        EXPECT_TRUE(of(config, key).warns) << key;
    const TrainerConfig said = look(
        R"({"model_family": "sdxl", "mixed_precision": "bf16", "optimizer": "adamw_bf16", "lr_end": 1e-7, "learning_rate": 1e-4})");
    for (const char* key : {"mixed_precision", "optimizer", "lr_end", "learning_rate"})
        EXPECT_FALSE(of(said, key).warns) << key;
}

TEST(Simpletuner, AnAccelerateFileGoesBeforeTheOtherKeys) {
    const strata_test::TemporaryFolder folder;
    std::ofstream{folder.path() / "acc.yaml"}
        << "distributed_type: MULTI_GPU\nnum_processes: 4\nmixed_precision: fp16\n";
    const TrainerConfig config =
        look("{\"mixed_precision\": \"bf16\", \"num_processes\": 2, \"accelerate_config\": \"" +
             (folder.path() / "acc.yaml").string() + "\"}");
    for (const char* key : {"mixed_precision", "num_processes"})
        EXPECT_EQ(of(config, key).words, "`accelerate_config` says it") << key;
    EXPECT_EQ(config.reading.findings.refused(), 0U) << config.reading.findings.table();
    EXPECT_EQ(config.reading.intent.launch.ranks, 4);
    EXPECT_EQ(config.reading.intent.composition.precision, FormatName::fp16);
}

TEST(Simpletuner, APromptLibraryIsAFileOfPrompts) {
    const strata_test::TemporaryFolder folder;
    std::ofstream{folder.path() / "prompts.json"}
        << R"({"a": "a red star", "b": {"prompt": "a blue car", "strength": 1}})";
    const TrainerConfig config = look(R"({"validation_prompt": "first", "user_prompt_library": "config/prompts.json"})",
                                      (folder.path() / "config.json").string());
    EXPECT_EQ(config.validation_prompts, (std::vector<std::string>{"first", "a red star", "a blue car"}));
    EXPECT_TRUE(look(R"({"validation_prompt": "x", "validation_disable": true})").validation_prompts.empty());
    EXPECT_TRUE(look(R"({"validation_prompt_file": "absent.txt", "validation_disable": true})").all_prompts().empty());
}

DatasetList list(const std::string& keys) {
    return read_datasets(parse_json("[{\"id\": \"a\", \"instance_data_dir\": \"x\", \"cache_dir_vae\": \"v\",\n" +
                                        keys +
                                        "},\n{\"id\": \"t\", \"dataset_type\": \"text_embeds\", \"cache_dir\": \"c\"}]",
                                    "list.json", JsonDialect::relaxed));
}

TEST(Simpletuner, ADatasetListSaysAllThatIsWrongWithLineAndColumn) {
    const auto error =
        strata_test::thrown_by([] { (void)list("\"repets\": 1,\n\"crop\": \"maybe\", \"probability\": 2"); });
    for (const char* says :
         {"3 problems", "list.json:2:11: key '[0].repets' is unknown", "did you mean 'repeats'",
          "list.json:3:9: key '[0].crop' is", "list.json:3:33: key '[0].probability' is 2, out of its range"})
        EXPECT_TRUE(error.says(says)) << says << "\n" << error.message;
}

TEST(Simpletuner, WhatHasNoEffectInADatasetListIsNoError) {
    EXPECT_EQ(list("\"target_downsample_size\": 1024, \"_comment\": \"x\", \"cache_file_suffix\": \"s\"")
                  .images.front()
                  .target_downsample_size,
              0);
    EXPECT_TRUE(list("\"crop\": \"true\", \"skip_file_discovery\": false").images.front().crop);
}

TEST(Simpletuner, AConfigurationWrittenBackSaysTheSame) {
    for (
        const char* json :
        {R"({"optimizer": "lion", "mixed_precision": "fp16", "learning_rate": 3e-5, "lr_scheduler": "cosine", "train_batch_size": 3,
              "max_train_steps": 70, "gradient_checkpointing": true, "use_ema": true, "ema_device": "accelerator", "optimizer_beta1": 0.8,
              "optimizer_beta2": 0.9, "max_grad_norm": 0.5, "deepspeed_config": {"zero_optimization": {"stage": 3}}})",
         R"({"optimizer": "adamw_bf16", "max_grad_norm": 0.1, "grad_clip_method": "value"})", "{}"}) {
        const Intent intent = look(json).reading.intent;
        const TrainerConfig again = look(write_trainer_config(intent));
        EXPECT_EQ(again.reading.findings.refused(), 0U) << again.reading.findings.table();
        EXPECT_EQ(again.reading.intent.composition, intent.composition) << json;
        EXPECT_EQ(again.reading.intent.batch, intent.batch);
        for (const OptionValue& option : intent.options)
            EXPECT_EQ(again.reading.intent.number(option.path), intent.number(option.path)) << option.path;
    }
}

TEST(Simpletuner, FormatsAreToldByTheirKeys) {
    const auto format = [](const char* json) {
        return format_of(parse_json(json, "x.json", JsonDialect::strict).root);
    };
    EXPECT_EQ(format(R"({"learning_rate": 1, "model_type": "full"})"), ConfigFormat::trainer);
    EXPECT_EQ(format(R"({"--seed": 1})"), ConfigFormat::trainer);
    EXPECT_EQ(format(R"({"zero_optimization": {"stage": 2}, "train_batch_size": 8})"), ConfigFormat::deepspeed);
    EXPECT_EQ(format(R"({"compute_environment": "LOCAL_MACHINE", "num_processes": 2, "distributed_type": "NO"})"),
              ConfigFormat::accelerate);
    EXPECT_EQ(format(R"([{"id": "x"}])"), ConfigFormat::datasets);
}

TEST(Simpletuner, NoKeyStandsInBothTables) {
    std::set<std::string_view> own;
    for (const KeyInfo& info : trainer_schema().keys()) {
        own.insert(info.key);
        if (!info.alias.empty()) own.insert(info.alias);
    }
    std::set<std::string_view> foreign;
    for (const ForeignKey& key : simpletuner_keys()) {
        EXPECT_FALSE(own.contains(key.key)) << key.key;
        EXPECT_TRUE(foreign.insert(key.key).second) << key.key << " stands twice";
        EXPECT_FALSE(key.instead.empty()) << key.key;
        EXPECT_FALSE(key.instead.ends_with('.')) << key.key;
    }
    for (const EnvName& name : simpletuner_env_names())
        EXPECT_TRUE(name.key.empty() || own.contains(name.key) || find_simpletuner_key(name.key) != nullptr)
            << name.name;
}

/// Prints a line a file: what it is, and its outcome.
TEST(Simpletuner, EveryRealFileIsReadOrRefusedWithAllItsProblems) {
    const fs::path folder = fs::path{STRATA_REFERENCE_DIR} / "data/configs/simpletuner";
    if (!fs::is_directory(folder)) GTEST_SKIP() << "no real files: " << folder;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator{folder}) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    ASSERT_GE(files.size(), 50U);
    std::size_t unknown = 0;
    for (const fs::path& file : files) {
        const AnyConfig config = look_at_config(file);
        std::string outcome =
            config.findings.refused() == 0 ? "read" : std::to_string(config.findings.refused()) + " problems";
        for (const Finding& one : config.findings.all()) {
            if (one.effect != Effect::refused) continue;
            unknown += one.code == Errc::unknown_key ? 1 : 0;
            EXPECT_FALSE(one.words.empty());
            EXPECT_FALSE(one.fix.empty()) << sentence(one);
            outcome += "; " + sentence(one).substr(std::min(sentence(one).size(), file.string().size()));
        }
        std::printf("%-45s %-12s %3zu keys %3zu warnings  %s\n", file.filename().c_str(),
                    std::string{name_of(config.format)}.c_str(), config.findings.all().size(),
                    config.findings.warnings(), outcome.substr(0, 400).c_str());
        EXPECT_FALSE(config.findings.all().empty()) << file;
    }
    EXPECT_LE(unknown, 6U) << "keys that SimpleTuner has and the table lacks";
}

}  // namespace
