#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/intent_options.hpp>
#include <strata/options/train_options.hpp>

#include "read_intent.hpp"

namespace {

using namespace strata::config;
using strata_test::deepspeed;
using testing_text = std::vector<std::pair<std::string, std::string>>;

TEST(Deepspeed, AKeyOfAnotherBlockIsNotToBeMovedThere) {
    const auto read = deepspeed(R"({"bf16": {"enabled": true, "loss_scale": 1}, "zero_optimization": {"lr": 3}})");
    EXPECT_EQ(read.findings.of("/bf16/loss_scale")->fix, "remove it");
    EXPECT_EQ(read.findings.of("/zero_optimization/lr")->fix, "remove it");
}

TEST(Deepspeed, AUsualFileIsActedOn) {
    const auto read = deepspeed(R"({
      "train_batch_size": 32, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2,
      "gradient_clipping": 1.0, "steps_per_print": 2000, "bf16": {"enabled": true},
      "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true},
                            "reduce_bucket_size": 5e8, "contiguous_gradients": true},
      "optimizer": {"type": "AdamW", "params": {"lr": 3e-5, "betas": [0.8, 0.99], "eps": 1e-7, "weight_decay": 0.1}}})");
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(read.policies(), "ZeroStage<2>, OffloadTarget<Cpu>, Precision<Bf16>");
    EXPECT_EQ(read.intent.composition.rule, RuleName::adamw);
    EXPECT_EQ(read.intent.batch, (BatchIntent{.global = 32, .micro = 8}));
    strata::TrainOptions<strata::zero::NoRule> options;
    const auto of_the_rule = apply(read.intent, options);
    EXPECT_EQ(options.schedule.lr, 3e-5);
    EXPECT_EQ(options.engine.max_grad_norm, 1.0);
    EXPECT_EQ(options.engine.gradient_accumulation_steps, 2);
    EXPECT_EQ(options.engine.bucket_numel, 500'000'000);
    EXPECT_EQ(of_the_rule.size(), 4U);
    EXPECT_EQ(read.intent.number("engine.update.beta1"), 0.8);
    EXPECT_EQ(read.intent.number("engine.update.weight_decay"), 0.1);
    EXPECT_EQ(read.findings.warnings(), 0U);
    EXPECT_EQ(read.findings.all().size(), 16U) << "every key has its word\n" << read.findings.table();
    EXPECT_EQ(read.findings.all().front().place, "ds.json:2:27") << "in the order of the file";
}

TEST(Deepspeed, WhatIsNotSaidOfARuleIsDeepSpeedsDefaultAndNotStratas) {
    const auto sgd = deepspeed(R"({"optimizer": {"type": "SGD", "params": {"lr": 0.1}}})");
    EXPECT_EQ(sgd.intent.number("engine.update.momentum"), 0.0);
    const auto adamw = deepspeed(R"({"optimizer": {"type": "AdamW"}})");
    EXPECT_EQ(adamw.intent.number("engine.update.weight_decay"), 0.0);
    EXPECT_EQ(adamw.intent.number("schedule.lr"), 1e-3);
    const auto lion = deepspeed(R"({"optimizer": {"type": "Lion", "params": {"lr": 1e-4}}})");
    EXPECT_EQ(lion.intent.number("engine.update.beta2"), 0.999);
}

TEST(Deepspeed, AllProblemsAreToldAtOnce) {
    const auto read = deepspeed(R"({"train_batch_size": 0, "zero_optimisation": {"stage": 2},
      "zero_optimization": {"stage": 4, "offload_optimizer": {"device": "gpu"}}, "gradient_clipping": -1,
      "optimizer": {"type": "AdmaW"}})");
    EXPECT_EQ(read.findings.refused(), 6U) << read.findings.table();
    for (const char* part :
         {"6 problems: ", "ds.json:1:22: /train_batch_size is 0, not a whole number from 1 on",
          "/zero_optimisation is unknown", "did you mean 'zero_optimization'",
          "/zero_optimization/stage is 4, not a whole number from 0 to 3", "the default is 0",
          "/zero_optimization/offload_optimizer/device is \"gpu\", not one of `none`, `cpu`, `nvme`",
          "/gradient_clipping is -1", "/optimizer/type is \"AdmaW\", which is no rule that strata knows",
          "did you mean 'AdamW'?"})
        EXPECT_NE(read.refusal().find(part), std::string::npos) << part << "\n" << read.refusal();
}

TEST(Deepspeed, AKeyThatStandsTwiceIsRefused) {
    EXPECT_NE(deepspeed(R"({"gradient_clipping": 1, "gradient_clipping": 1})").refusal().find("appears twice"),
              std::string::npos);
}

TEST(Deepspeed, TheWidelyCopiedParameterOffloadBelowStageThreeIsAWarning) {
    const auto read = deepspeed(R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"},
                                     "offload_param": {"device": "cpu", "pin_memory": true}}})");
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(read.policies(), "ZeroStage<2>, OffloadTarget<Cpu>");
    EXPECT_EQ(
        read.said("/zero_optimization/offload_param/device"),
        "! no effect: parameters are whole on every rank below stage 3 (this is stage 2), and none are offloaded; "
        "DeepSpeed ignores it too");
    EXPECT_EQ(deepspeed(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})").policies(),
              "ZeroStage<3>, OffloadTarget<Cpu, Parameters>");
}

TEST(Deepspeed, OffloadWithoutShardingIsAWarning) {
    const auto read = deepspeed(R"({"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}})");
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(read.policies(), "");
    EXPECT_EQ(read.said("/zero_optimization/offload_optimizer/device").substr(0, 12), "! no effect:");
}

TEST(Deepspeed, NvmeNeedsAPath) {
    const auto read = deepspeed(R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"},
                                     "offload_param": {"device": "nvme", "nvme_path": "/a"}}})");
    EXPECT_EQ(read.findings.refused(), 1U);
    EXPECT_NE(read.refusal().find(
                  "/zero_optimization/offload_optimizer/device is \"nvme\", and no nvme_path says where. Fix: add "
                  "\"nvme_path\": "),
              std::string::npos)
        << read.refusal();
    const auto good = deepspeed(R"({"aio": {"block_size": 262144, "thread_count": 2, "queue_depth": 16},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/a"}}})");
    EXPECT_EQ(good.refusal(), "");
    EXPECT_EQ(good.policies(), "ZeroStage<2>, OffloadTarget<Nvme>");
    EXPECT_NE(good.said("/zero_optimization/offload_optimizer/device").find("where DeepSpeed keeps it in host memory"),
              std::string::npos);
    EXPECT_EQ(good.intent.number("engine.tiers.state.io.block_bytes"), 262144);
    EXPECT_EQ(good.intent.number("engine.tiers.state.io.threads"), 2);
    EXPECT_EQ(good.intent.find("engine.tiers.units.io.threads"), nullptr);
    EXPECT_EQ(good.said("/aio/thread_count").substr(0, 60),
              "! mapped: engine.tiers.state.io.threads: the old name of `ai");
}

TEST(Deepspeed, OptimizerOffloadWithAClientsOptimizerIsSaid) {
    const auto read = deepspeed(R"({"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}})");
    EXPECT_EQ(read.refusal(), "");
    EXPECT_NE(read.said("/zero_optimization/offload_optimizer/device").find("DeepSpeed refuses a client's optimizer"),
              std::string::npos)
        << read.said("/zero_optimization/offload_optimizer/device");
}

TEST(Deepspeed, ARatioIsASplit) {
    const auto read = deepspeed(
        R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.3}}, "optimizer": {"type": "Adam"}})");
    EXPECT_EQ(read.policies(), "ZeroStage<3>, OffloadTarget<Split<Device, Cpu, 70>>");
    EXPECT_EQ(deepspeed(R"({"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu", "ratio": 0}}})")
                  .policies(),
              "ZeroStage<1>");
    EXPECT_NE(deepspeed(R"({"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu", "ratio": 1.5}}})")
                  .refusal()
                  .find("not a number from 0 to 1"),
              std::string::npos);
}

TEST(Deepspeed, OldNamesAreReadWithAWarning) {
    const auto read =
        deepspeed(R"({"bfloat16": {"enabled": true}, "zero_optimization": {"stage": 2, "cpu_offload": true,
        "stage3_gather_fp16_weights_on_model_save": false, "allgather_size": 1e8}})");
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(read.policies(), "ZeroStage<2>, OffloadTarget<Cpu>, Precision<Bf16>");
    EXPECT_TRUE(read.findings.of("/zero_optimization/cpu_offload")->warns);
    EXPECT_TRUE(read.findings.of("/zero_optimization/allgather_size")->warns);
    EXPECT_EQ(deepspeed(R"({"zero_optimization": true})").policies(), "ZeroStage<1>");
    EXPECT_EQ(deepspeed(R"({"zero_optimization": false})").policies(), "");
    for (const char* both :
         {R"({"zero_optimization": {"stage": 1, "cpu_offload": true, "offload_optimizer": {"device": "cpu"}}})",
          R"({"aio": {"thread_count": 1, "intra_op_parallelism": 1}})"})
        EXPECT_NE(deepspeed(both).refusal().find("are the same key, one by its old name"), std::string::npos) << both;
}

TEST(Deepspeed, UnknownKeysAreTypingErrorsOrWarnings) {
    EXPECT_NE(deepspeed(R"({"gradient_cliping": 1})").refusal().find("did you mean 'gradient_clipping'"),
              std::string::npos);
    EXPECT_NE(deepspeed(R"({"zero_optimization": {"stge": 1}})").refusal().find("did you mean 'stage'"),
              std::string::npos);
    EXPECT_NE(deepspeed(R"({"zero_optimization": {"nonsense": 1}})").refusal().find("/nonsense is unknown"),
              std::string::npos);
    const auto read =
        deepspeed(R"({"_comment": "a remark", "backend": "nccl", "memory_efficient_linear": false, "name": "x",
        "zero_optimization": {"stage": 1, "offload_parameters": false, "zero_allow_untested_optimizer": true}})");
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(read.said("/_comment"), "no effect: a remark");
    EXPECT_EQ(read.said("/backend"), "! no effect: unknown to strata, and to DeepSpeed as far as strata knows");
    EXPECT_EQ(read.said("/memory_efficient_linear"),
              "! no effect: a key of `zero_optimization`, which DeepSpeed does not read here");
    EXPECT_EQ(read.findings.of("/zero_optimization/offload_parameters")->fix, "did you mean 'offload_param'");
    EXPECT_EQ(read.findings.of("/zero_optimization/zero_allow_untested_optimizer")->fix, "move it there");
}

TEST(Deepspeed, ABatchThatDoesNotAddUpIsRefusedWithTheSentencePeopleKnow) {
    const auto read =
        deepspeed(R"({"train_batch_size": 33, "train_micro_batch_size_per_gpu": 17, "gradient_accumulation_steps": 2})",
                  {.ranks = 1});
    EXPECT_NE(read.refusal().find(
                  "ds.json:1:22: /train_batch_size is 33: check batch related parameters: train_batch_size is not "
                  "equal to micro_batch_per_gpu * gradient_acc_step * world_size, 33 != 17 * 2 * 1. Fix: (1) set "
                  "train_batch_size to 34"),
              std::string::npos)
        << read.refusal();
    EXPECT_NE(
        deepspeed(R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1})")
            .refusal(),
        "")
        << "on no number of ranks";
    const auto fixed =
        deepspeed(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2})");
    EXPECT_EQ(fixed.said("/train_batch_size"), "acts: samples of a step: on 2 ranks, which the three numbers fix");
    EXPECT_NE(
        deepspeed(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2})",
                  {.ranks = 4})
            .refusal(),
        "");
    EXPECT_EQ(
        deepspeed(
            R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3})")
            .refusal(),
        "");
    EXPECT_EQ(deepspeed(R"({"gradient_accumulation_steps": 3})").refusal(), "") << "the trainer says the rest";
}

TEST(Deepspeed, AutoIsLeftToWhoRunsIt) {
    const auto read = deepspeed(
        R"({"train_micro_batch_size_per_gpu": "auto", "gradient_clipping": "auto", "bf16": {"enabled": "auto"},
        "steps_per_print": "auto", "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}},
        "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "auto", "sub_group_size": "auto"}})");
    EXPECT_EQ(read.refusal(), "");
    std::set<std::string> keys;
    for (const Automatic& one : read.intent.automatic) keys.insert(one.key);
    EXPECT_EQ(keys, (std::set<std::string>{"train_micro_batch_size_per_gpu", "gradient_clipping", "bf16.enabled",
                                           "optimizer.params.lr", "optimizer.params.betas",
                                           "zero_optimization.stage3_prefetch_bucket_size"}));
    EXPECT_FALSE(read.intent.composition.precision);
    EXPECT_EQ(read.intent.find("schedule.lr"), nullptr);
    EXPECT_EQ(read.intent.find("engine.update.beta1"), nullptr);
}

TEST(Deepspeed, PrecisionAndItsLossScale) {
    EXPECT_EQ(deepspeed(R"({"fp16": {"enabled": true}})").policies(), "Precision<Fp16>");
    EXPECT_EQ(deepspeed(R"({"fp16": {"enabled": false}, "bf16": {"enabled": false}})").intent.composition.precision,
              FormatName::fp32);
    EXPECT_FALSE(deepspeed(R"({"fp16": {"enabled": false}})").intent.composition.precision);
    EXPECT_NE(
        deepspeed(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})").refusal().find("and so is fp16.enabled"),
        std::string::npos);
    EXPECT_EQ(
        deepspeed(
            R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}})")
            .policies(),
        "Precision<PureBf16>");
    EXPECT_NE(deepspeed(R"({"bf16": {"enabled": true, "bf16_optimizer_states": true}})").refusal(), "");
    EXPECT_NE(deepspeed(R"({"amp": {"enabled": true}, "zero_optimization": {"stage": 1}})")
                  .refusal()
                  .find("apex cannot shard"),
              std::string::npos);
    EXPECT_EQ(deepspeed(R"({"amp": {"enabled": true, "opt_level": "O1"}})").policies(), "Precision<Fp16>");

    const auto moving =
        deepspeed(R"({"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 12, "hysteresis": 4}})");
    EXPECT_EQ(moving.intent.number("engine.loss_scale.initial"), 4096);
    EXPECT_EQ(moving.intent.number("engine.loss_scale.hysteresis"), 4);
    const auto fixed = deepspeed(R"({"fp16": {"enabled": true, "loss_scale": 128, "initial_scale_power": 12}})");
    EXPECT_EQ(fixed.intent.number("engine.loss_scale.initial"), 128);
    EXPECT_EQ(fixed.said("/fp16/initial_scale_power"), "no effect: loss_scale says a scale that stays");
    EXPECT_EQ(deepspeed(R"({"fp16": {"enabled": false, "hysteresis": 4}})").said("/fp16/hysteresis"),
              "no effect: fp16 is not enabled");
    EXPECT_NE(deepspeed(R"({"fp16": {"enabled": true, "initial_scale_power": 2, "min_loss_scale": 8}})")
                  .refusal()
                  .find("above the scale"),
              std::string::npos);
}

TEST(Deepspeed, RulesAreTakenByTheNamesThatPeopleWrite) {
    const auto rule_of = [](const std::string& type, const std::string& params = "") {
        return deepspeed(R"({"optimizer": {"type": ")" + type + R"(", "params": {)" + params + "}}}");
    };
    for (const auto& [name, rule] :
         std::vector<std::pair<std::string, RuleName>>{{"adamw", RuleName::adamw},
                                                       {"ADAM", RuleName::adamw},
                                                       {"torch.optim.AdamW", RuleName::adamw},
                                                       {"Lamb", RuleName::lamb},
                                                       {"lion", RuleName::lion},
                                                       {"Adagrad", RuleName::adagrad},
                                                       {"SGD", RuleName::sgd},
                                                       {"adamw_torch", RuleName::adamw}}) {
        EXPECT_EQ(rule_of(name).intent.composition.rule, rule) << name;
        EXPECT_EQ(rule_of(name).findings.warnings(), 0U) << name;
    }
    for (const char* name : {"cpuadam", "fusedadam", "DeepSpeedCPUAdam", "CPU_Adam"}) {
        EXPECT_EQ(rule_of(name).intent.composition.rule, RuleName::adamw) << name;
        EXPECT_EQ(rule_of(name).findings.warnings(), 1U) << name;
    }
    EXPECT_EQ(rule_of("Adam", "\"adam_w_mode\": false").intent.composition.rule, RuleName::adam);
    EXPECT_EQ(rule_of("Adam", "\"adam_w_mode\": true").intent.composition.rule, RuleName::adamw);
    EXPECT_EQ(rule_of("cpuadam", "\"adam_w_mode\": false").intent.composition.rule, RuleName::adam);
    EXPECT_EQ(rule_of("AdamW", "\"adam_w_mode\": false").intent.composition.rule, RuleName::adamw);
    for (const auto& [name, nearest] : testing_text{{"OneBitAdam", "Adam"},
                                                    {"OneBitLamb", "Lamb"},
                                                    {"ZeroOneAdam", "Adam"},
                                                    {"MuAdam", "Adam"},
                                                    {"MuAdamW", "AdamW"},
                                                    {"MuSGD", "SGD"},
                                                    {"Muon", "Lion"}}) {
        EXPECT_EQ(rule_of(name).findings.refused(), 1U) << name;
        EXPECT_NE(rule_of(name).refusal().find("the nearest is " + nearest + ";"), std::string::npos)
            << rule_of(name).refusal();
    }
    EXPECT_NE(rule_of("adanw").refusal().find("did you mean 'AdamW'?"), std::string::npos);
    EXPECT_EQ(rule_of("adanw").intent.composition.rule, std::nullopt) << "a typing error is not AdamW";
}

TEST(Deepspeed, NumbersThatARuleDoesNotHaveAreSaid) {
    const auto sgd =
        deepspeed(R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9, "betas": [0.9, 0.99], "eps": 1e-8}}})");
    EXPECT_EQ(sgd.intent.number("engine.update.momentum"), 0.9);
    EXPECT_EQ(sgd.said("/optimizer/params/betas"), "no effect: no numbers of Sgd");
    EXPECT_EQ(sgd.said("/optimizer/params/eps"), "no effect: a number of other rules than Sgd");
    for (const char* params : {"\"amsgrad\": true", "\"bias_correction\": false", "\"betas\": [0.9]",
                               "\"betas\": [0.9, 1.5]", "\"betas\": [0.9, \"x\"]", "\"lr\": -1", "\"eps\": 0"})
        EXPECT_NE(deepspeed(R"({"optimizer": {"type": "AdamW", "params": {)" + std::string{params} + "}}}").refusal(),
                  "")
            << params;
    EXPECT_EQ(deepspeed(R"({"optimizer": {"type": "AdamW", "params": {"lr": "2e-4"}}})").intent.number("schedule.lr"),
              2e-4)
        << "a number in quotes";
}

TEST(Deepspeed, MaxGradNormAmongARulesNumbersIsClipping) {
    EXPECT_EQ(deepspeed(R"({"optimizer": {"type": "Adam", "params": {"max_grad_norm": 0.5}}})")
                  .intent.number("engine.max_grad_norm"),
              0.5);
    EXPECT_EQ(deepspeed(R"({"gradient_clipping": 1, "optimizer": {"type": "Adam", "params": {"max_grad_norm": 1.0}}})")
                  .refusal(),
              "");
    EXPECT_NE(deepspeed(R"({"gradient_clipping": 1, "optimizer": {"type": "Adam", "params": {"max_grad_norm": 2}}})")
                  .refusal(),
              "");
}

TEST(Deepspeed, SchedulesHaveDeepSpeedsValues) {
    const auto at = [](const std::string& json, std::int64_t step) {
        strata::TrainOptions<strata::zero::NoRule> options;
        const auto read = deepspeed(json);
        EXPECT_EQ(read.refusal(), "");
        (void)apply(read.intent, options);
        return options.schedule.for_run(strata::optim::RunLength{1000}).at(step);
    };
    const std::string warmup =
        R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 1e-4, "warmup_num_steps": 500}}})";
    EXPECT_NEAR(at(warmup, 100), 7.410234262651711e-05, 1e-15);
    EXPECT_DOUBLE_EQ(at(warmup, 600), 1e-4);
    EXPECT_DOUBLE_EQ(
        at(R"({"optimizer": {"type": "AdamW", "params": {"lr": 2e-4}}, "scheduler": {"type": "WarmupLR", "params": {}}})",
           999),
        2e-4 * std::log(999.0) / std::log(1000.0))
        << "without a warmup_max_lr it is the optimizer's";
    EXPECT_NEAR(
        at(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 0.1, "warmup_max_lr": 0.2, "warmup_num_steps": 10,
                  "total_num_steps": 20}}})",
           16),
        0.15, 1e-12);
    EXPECT_GT(
        at(R"({"scheduler": {"type": "WarmupCosineLR", "params": {"warmup_num_steps": 10, "total_num_steps": 100}}, "optimizer": {"type": "AdamW", "params": {"lr": 0.5}}})",
           12),
        0.4);
    EXPECT_EQ(deepspeed(R"({"scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 50, "eta_min": 1e-6}}})")
                  .intent.number("schedule.total_steps"),
              50);
    EXPECT_NE(deepspeed(R"({"scheduler": {"type": "WarmupDecay"}})").refusal().find("did you mean 'WarmupDecayLR'?"),
              std::string::npos);
    EXPECT_NE(deepspeed(R"({"scheduler": {"type": "StepLR"}})").refusal().find("the nearest is WarmupDecayLR"),
              std::string::npos);
    EXPECT_NE(
        deepspeed(
            R"({"scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 10, "total_num_steps": 10}}})")
            .refusal()
            .find("the warm-up alone has 10 steps"),
        std::string::npos);
    EXPECT_EQ(deepspeed(R"({"scheduler": {"type": "WarmupLR", "params": {"cycle_min_lr": 0.1}}})")
                  .said("/scheduler/params/cycle_min_lr"),
              "no effect: a number of other schedules than WarmupLR");
}

TEST(Deepspeed, AWarmupOfNoStepsIsTakenAsTheShortestThereIs) {
    const auto read = deepspeed(R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}})");
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(std::get<strata::optim::WarmupLr>(read.intent.rate).warmup_steps, 1);
    EXPECT_EQ(read.said("/scheduler/params/warmup_num_steps"),
              "! mapped: schedule's warmup_steps: as 1, the shortest warm-up there is, which rises in two steps; "
              "DeepSpeed refuses 0");
}

TEST(Deepspeed, AValueInPlaceOfAnObjectIsAnsweredWithTheObjectThatWasMeant) {
    struct Case {
        const char* json;
        const char* says;
    };
    for (const Case& one : {Case{R"({"zero_optimization": {"stage": 2, "offload_optimizer": true}})",
                                 "write \"offload_optimizer\": {\"device\": \"cpu\"}, or \"nvme\" with its nvme_path"},
                            Case{R"({"bf16": true})", "Fix: write {\"enabled\": true}"},
                            Case{R"({"optimizer": "AdamW"})", "Fix: write {\"type\": \"AdamW\"}"},
                            Case{R"({"aio": 3})", "Fix: write an object: {\"block_size\": ...}"}})
        EXPECT_NE(deepspeed(one.json).refusal().find(one.says), std::string::npos) << deepspeed(one.json).refusal();
}

TEST(Deepspeed, KeysOfStageThreeBelowItAreSaid) {
    const auto read = deepspeed(
        R"({"zero_optimization": {"stage": 1, "stage3_max_live_parameters": 1e9, "stage3_prefetch_bucket_size": 5e7}})");
    EXPECT_EQ(read.said("/zero_optimization/stage3_max_live_parameters"), "no effect: of stage 3, and this is stage 1");
    EXPECT_EQ(read.intent.find("engine.max_live_parameters"), nullptr);
    const auto three = deepspeed(
        R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 5e7}})");
    EXPECT_EQ(three.intent.number("engine.prefetch_bucket_bytes"), 1e8) << "elements of 2 bytes";
}

TEST(Deepspeed, MethodsThatStrataDoesNotHaveAreWarnings) {
    const auto read = deepspeed(
        R"({"curriculum_learning": {"enabled": true, "x": 1}, "tensorboard": {"enabled": true, "output_path": "x"},
        "pipeline": {"stages": 2}, "compression_training": {"weight_quantization": {}}, "flops_profiler": {"enabled": false},
        "activation_checkpointing": {"cpu_checkpointing": true}})");
    EXPECT_EQ(read.refusal(), "");
    for (const char* key : {"/curriculum_learning", "/pipeline", "/compression_training", "/tensorboard/enabled",
                            "/activation_checkpointing/cpu_checkpointing"})
        EXPECT_EQ(read.said(key).substr(0, 12), "! no effect:") << key << " " << read.said(key);
    EXPECT_EQ(read.said("/flops_profiler/enabled").substr(0, 10), "no effect:");
    EXPECT_NE(deepspeed(R"({"gradient_allreduce_op": "SUM"})").refusal().find("takes the mean"), std::string::npos);
}

TEST(Deepspeed, OtherDocumentsAreTold) {
    EXPECT_NE(deepspeed("[1]").refusal().find("is a list, and no DeepSpeed configuration"), std::string::npos);
    EXPECT_NE(deepspeed(R"({"distributed_type": "NO"})").refusal().find("is an Accelerate configuration"),
              std::string::npos);
    const auto wrapped = deepspeed(R"({"args": {}, "deepspeed": {"zero_optimization": {"stage": 2}}})");
    EXPECT_EQ(wrapped.policies(), "ZeroStage<2>");
    EXPECT_EQ(wrapped.findings.warnings(), 1U);
}

TEST(Deepspeed, WhatIsWrittenIsReadAsTheSame) {
    for (
        const char* json :
        {R"({})",
         R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/a", "ratio": 0.4},
              "offload_param": {"device": "cpu"}, "stage3_prefetch_bucket_size": 1000}, "aio": {"block_size": 4096, "queue_depth": 4},
              "fp16": {"enabled": true, "loss_scale": 64, "hysteresis": 3}, "gradient_clipping": 0.7, "train_batch_size": "auto",
              "optimizer": {"type": "Adam", "params": {"adam_w_mode": false, "lr": "auto", "betas": [0.7, 0.8]}},
              "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 0.2}}})",
         R"({"optimizer": {"type": "Lamb", "params": {"bias_correction": false}}, "bf16": {"enabled": true, "check_grad_overflow": true},
              "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 3000}}})"}) {
        const auto first = deepspeed(json);
        ASSERT_EQ(first.refusal(), "");
        const auto second = deepspeed(write_deepspeed(first.intent));
        EXPECT_EQ(second.refusal(), "");
        EXPECT_EQ(first.intent, second.intent) << write_deepspeed(first.intent);
    }
}

TEST(Deepspeed, ABatchThatNoNumberOfRanksMakesIsRefused) {
    const auto micro = deepspeed(R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4})");
    EXPECT_NE(micro.refusal().find("(1) set train_batch_size to 8"), std::string::npos) << micro.refusal();
    EXPECT_EQ(deepspeed(R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 4})").findings.refused(), 0U);
    EXPECT_TRUE(deepspeed(R"({"train_batch_size": 10, "gradient_accumulation_steps": 4})")
                    .findings.of("/train_batch_size")
                    ->warns);
    EXPECT_FALSE(deepspeed(R"({"train_batch_size": 12, "gradient_accumulation_steps": 4})")
                     .findings.of("/train_batch_size")
                     ->warns);
}

TEST(Deepspeed, ARuleMayBeNamedAsSimpleTunerNamesIt) {
    const auto named = deepspeed(R"({"optimizer": {"name": "SGD", "params": {"lr": 0.1}}})");
    EXPECT_EQ(named.intent.composition.rule, RuleName::sgd);
    EXPECT_EQ(named.findings.warnings(), 1U);
    const auto nameless = deepspeed(R"({"optimizer": {"params": {"lr": 0.1}}})");
    EXPECT_EQ(nameless.intent.composition.rule, std::nullopt);
    EXPECT_TRUE(nameless.findings.of("/optimizer")->warns);
    EXPECT_EQ(deepspeed(R"({"optimizer": "SGD"})").findings.refused(), 1U);
}

TEST(Deepspeed, AStageThatIsNotKnownDropsNoTier) {
    for (const char* stage : {"\"auto\"", "7"}) {
        const auto read =
            deepspeed(R"({"zero_optimization": {"stage": )" + std::string{stage} +
                      R"(, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}})");
        EXPECT_EQ(read.intent.composition.stage, std::nullopt) << stage;
        EXPECT_EQ(read.intent.composition.state, KeptOn::all_on(TierName::cpu)) << stage;
        EXPECT_EQ(read.intent.composition.parameters, KeptOn::all_on(TierName::cpu)) << stage;
        EXPECT_EQ(read.findings.table().find("this is stage"), std::string::npos) << stage;
    }
}

TEST(Deepspeed, SectionsAreNotAutomatic) {
    for (const char* section : {"zero_optimization", "optimizer", "fp16"})
        EXPECT_EQ(deepspeed("{\"" + std::string{section} + R"(": "auto"})").findings.refused(), 1U) << section;
}

TEST(Deepspeed, BytesOfABucketCanBeCounted) {
    const auto read = [](const std::string& elements) {
        return deepspeed(R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": )" + elements + "}}");
    };
    EXPECT_EQ(read("9000000000000000000").findings.refused(), 1U);
    EXPECT_EQ(read("250000000000000").intent.number("engine.prefetch_bucket_bytes"), 1e15);
}

TEST(Deepspeed, TheTopOfAWarmupThatDecaysHasItsOwnDefault) {
    const auto rate = [](const std::string& params) {
        return deepspeed(R"({"optimizer": {"type": "AdamW", "params": {"lr": 2e-4}},
            "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 9000)" +
                         params + "}}}");
    };
    const auto silent = rate("");
    EXPECT_FALSE(silent.intent.rate_follows_lr);
    EXPECT_EQ(std::get<strata::optim::WarmupDecayLr>(silent.intent.rate).max_lr, 1e-3);
    const auto automatic = rate(R"(, "warmup_max_lr": "auto")");
    EXPECT_TRUE(automatic.intent.rate_follows_lr);
    EXPECT_EQ(deepspeed(write_deepspeed(automatic.intent)).intent, automatic.intent);
}

TEST(Deepspeed, ATrainersConfigurationIsNone) {
    for (const char* json : {R"({"model_family": "flux", "train_batch_size": 2})", R"({"--train_batch_size": 2})"})
        EXPECT_NE(deepspeed(json).refusal().find("is a trainer's configuration"), std::string::npos) << json;
}

}  // namespace
