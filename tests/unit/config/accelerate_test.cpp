#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/storage/atomic_file.hpp>

#include "../../support/temporary_folder.hpp"
#include "read_intent.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
using strata_test::accelerate;

std::string deepspeed_plugin(const std::string& lines) {
    return "distributed_type: DEEPSPEED\nmixed_precision: bf16\ndeepspeed_config:\n" + lines;
}

/// A folder with a home for Accelerate's files.
class Accelerate : public testing::Test {
protected:
    void write(const std::string& name, const std::string& text) {
        std::filesystem::create_directories((folder_.path() / name).parent_path());
        strata::storage::write_file(folder_.path() / name, text);
    }
    [[nodiscard]] strata::Environment environment() const {
        return [this](const std::string& name) -> std::optional<std::string> {
            const auto found = variables_.find(name);
            return found == variables_.end() ? std::nullopt : std::optional<std::string>{found->second};
        };
    }
    strata_test::TemporaryFolder folder_;
    std::map<std::string, std::string> variables_;
};

TEST_F(Accelerate, AUsualFileIsActedOn) {
    const auto read = accelerate(
        "compute_environment: LOCAL_MACHINE\ndebug: false\ndeepspeed_config:\n  gradient_accumulation_steps: 4\n"
        "  gradient_clipping: 1.0\n  offload_optimizer_device: cpu\n  offload_param_device: cpu\n  zero3_init_flag: true\n"
        "  zero_stage: 3\ndistributed_type: DEEPSPEED\ndowncast_bf16: 'no'\nmachine_rank: 0\nmain_training_function: main\n"
        "mixed_precision: 'bf16'\nnum_machines: 1\nnum_processes: 8\nrdzv_backend: static\nsame_network: true\ntpu_env: []\n"
        "tpu_use_cluster: false\nuse_cpu: false\n");
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(read.policies(), "ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>, Precision<Bf16>");
    EXPECT_EQ(read.intent.number("engine.gradient_accumulation_steps"), 4);
    EXPECT_EQ(read.intent.number("engine.max_grad_norm"), 1.0);
    EXPECT_EQ(read.intent.launch.ranks, 8);
    EXPECT_EQ(read.findings.warnings(), 0U) << read.findings.table(true);
    EXPECT_EQ(read.findings.all().size(), 20U) << read.findings.table();
}

TEST_F(Accelerate, UnknownKeysAtTheTopAreRefusedAsAccelerateDoes) {
    EXPECT_NE(accelerate("distributed_type: NO\nnum_process: 2\n").refusal().find("did you mean 'num_processes'"),
              std::string::npos);
    const auto read = accelerate("distributed_type: NO\ninvalid_key: 1\nanother_invalid_key: 2\n");
    EXPECT_EQ(read.findings.refused(), 2U);
    EXPECT_NE(
        accelerate("distributed_type: DEEPSPEED\nzero_stage: 3\n").refusal().find("is a key of `deepspeed_config`"),
        std::string::npos);
    EXPECT_NE(accelerate("num_processes: 2\n").refusal().find("has no distributed_type, which Accelerate requires"),
              std::string::npos);
    EXPECT_EQ(accelerate("distributed_type: NO\ndeepspeed_config: {mixed_precision: bf16}\n").refusal(), "")
        << "nested ones it never looks at";
}

TEST_F(Accelerate, StagesAreWhatDistributedTypesAre) {
    EXPECT_EQ(accelerate("distributed_type: MULTI_GPU\n").intent.composition.stage, 0);
    EXPECT_EQ(accelerate("distributed_type: no\n").intent.composition.stage, 0) << "a boolean to PyYAML";
    EXPECT_EQ(accelerate("distributed_type: DEEPSPEED\n").policies(), "ZeroStage<2>");
    EXPECT_EQ(accelerate("distributed_type: FSDP\n").policies(), "ZeroStage<3>");
    const auto fsdp = [](const std::string& keys) {
        return accelerate("distributed_type: FSDP\nfsdp_config: {" + keys + "}\n").policies();
    };
    EXPECT_EQ(fsdp("fsdp_sharding_strategy: FULL_SHARD"), "ZeroStage<3>");
    EXPECT_EQ(fsdp("fsdp_sharding_strategy: 1"), "ZeroStage<3>");
    EXPECT_EQ(fsdp("fsdp_sharding_strategy: SHARD_GRAD_OP"), "ZeroStage<2>");
    EXPECT_EQ(fsdp("fsdp_sharding_strategy: 3"), "");
    EXPECT_EQ(fsdp("fsdp_version: 2, fsdp_reshard_after_forward: false"), "ZeroStage<2>");
    EXPECT_EQ(fsdp("fsdp_offload_params: true, fsdp_activation_checkpointing: true"),
              "ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>, Recompute<Blocks>");
    EXPECT_EQ(fsdp("fsdp_sharding_strategy: SHARD_GRAD_OP, fsdp_offload_params: true"),
              "ZeroStage<2>, OffloadTarget<Cpu>");
    EXPECT_EQ(
        accelerate("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}\n").findings.warnings(),
        1U);
    EXPECT_NE(accelerate("distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: FULL_SHAD}\n")
                  .refusal()
                  .find("did you mean `FULL_SHARD`?"),
              std::string::npos);
    EXPECT_EQ(
        accelerate("distributed_type: MEGATRON_LM\nmegatron_lm_config: {megatron_lm_use_distributed_optimizer: true, "
                   "megatron_lm_recompute_activations: true, megatron_lm_tp_degree: 1}\n")
            .policies(),
        "ZeroStage<1>, Recompute<Blocks>");
}

TEST_F(Accelerate, WhatNoPlatformOfStratasDoesIsOneSentence) {
    EXPECT_NE(accelerate("compute_environment: AMAZON_SAGEMAKER\ndistributed_type: NO\n")
                  .refusal()
                  .find("strata starts no jobs on SageMaker"),
              std::string::npos);
    EXPECT_NE(accelerate("distributed_type: XLA\n").refusal().find("strata has no TPUs"), std::string::npos);
    EXPECT_NE(accelerate("distributed_type: MEGATRON_LM\nmegatron_lm_config: {megatron_lm_tp_degree: 2}\n")
                  .refusal()
                  .find("splits no layers"),
              std::string::npos);
    EXPECT_NE(accelerate("distributed_type: FSDP\nparallelism_config: {parallelism_config_cp_size: 4}\n").refusal(),
              "");
    EXPECT_EQ(accelerate("distributed_type: MULTI_XPU\n").findings.warnings(), 1U);
    EXPECT_EQ(accelerate("distributed_type: NO\nmixed_precision: fp8\n").said("/mixed_precision"),
              "! mapped: Precision<Bf16>: strata does not train in 8 bits, and bf16 is the nearest");
}

TEST_F(Accelerate, PairsThatAccelerateIgnoresSilentlyAreSaid) {
    const auto low =
        accelerate(deepspeed_plugin("  zero_stage: 2\n  offload_param_device: cpu\n  zero3_save_16bit_model: true\n"));
    EXPECT_EQ(low.refusal(), "");
    EXPECT_EQ(low.said("/deepspeed_config/offload_param_device").substr(0, 12), "! no effect:");
    EXPECT_EQ(low.said("/deepspeed_config/zero3_save_16bit_model"), "no effect: of stage 3, and this is stage 2");
    const auto other = accelerate("distributed_type: MULTI_GPU\ndeepspeed_config: {zero_stage: 2}\n");
    EXPECT_EQ(other.policies(), "");
    EXPECT_EQ(other.said("/deepspeed_config").substr(0, 12), "! no effect:");
    EXPECT_NE(accelerate(deepspeed_plugin("  zero_stage: 3\n  offload_optimizer_device: nvme\n"))
                  .refusal()
                  .find("no offload_optimizer_nvme_path says where"),
              std::string::npos);
    EXPECT_EQ(accelerate(deepspeed_plugin(
                             "  zero_stage: 3\n  offload_optimizer_device: nvme\n  offload_optimizer_nvme_path: /a\n"))
                  .policies(),
              "ZeroStage<3>, OffloadTarget<Nvme>, Precision<Bf16>")
        << "Accelerate itself forgets the path";
    EXPECT_NE(accelerate(deepspeed_plugin("  zero_stage: 7\n")).refusal(), "");
    EXPECT_NE(
        accelerate("distributed_type: NO\nnum_machines: 2\nmachine_rank: 2\n").refusal().find("there are 2 machines"),
        std::string::npos);
    EXPECT_EQ(accelerate("distributed_type: NO\nnum_machines: 64\nnum_processes: 16\n").findings.warnings(), 1U);
    EXPECT_NE(accelerate("distributed_type: NO\nmain_process_port: 70000\n").refusal(), "");
}

TEST_F(Accelerate, ADeepSpeedFileIsReadFromBesideTheYaml) {
    write("ds.json",
          R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "gradient_accumulation_steps": "auto"})");
    const AccelerateContext context{.folder = folder_.path()};
    const auto read = accelerate(deepspeed_plugin("  deepspeed_config_file: ds.json\n  zero_stage: 2\n"), context);
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(read.policies(), "ZeroStage<2>, Precision<Bf16>");
    EXPECT_EQ(read.said("/deepspeed_config/zero_stage"), "no effect: the DeepSpeed file says the same");
    EXPECT_NE(
        accelerate(deepspeed_plugin("  deepspeed_config_file: ds.json\n  zero_stage: 3\n  offload_param_device: cpu\n"),
                   context)
            .refusal()
            .find("2 problems"),
        std::string::npos);
    EXPECT_NE(
        accelerate(
            "distributed_type: DEEPSPEED\nmixed_precision: fp16\ndeepspeed_config: {deepspeed_config_file: ds.json}\n",
            context)
            .refusal()
            .find("is fp16, and deepspeed_config_file says Precision<Bf16>"),
        std::string::npos);
    write("ds.json", "{");
    EXPECT_NE(accelerate(deepspeed_plugin("  deepspeed_config_file: ds.json\n"), context)
                  .refusal()
                  .find("names a file that cannot be read"),
              std::string::npos);
}

TEST_F(Accelerate, ADeepSpeedFileThatIsMissingIsAWarningUntilItIsNeeded) {
    const auto read = accelerate(deepspeed_plugin("  deepspeed_config_file: /nowhere/ds.json\n"));
    EXPECT_EQ(read.refusal(), "");
    EXPECT_EQ(read.intent.missing_files, std::vector<std::string>{"/nowhere/ds.json"});
    EXPECT_FALSE(read.intent.composition.stage) << "the file would say it";
    EXPECT_NE(accelerate(deepspeed_plugin("  deepspeed_config_file: /nowhere/ds.json\n"),
                         {.folder = {}, .wants_all_files = true})
                  .refusal()
                  .find("names a file that is not there"),
              std::string::npos);
}

TEST_F(Accelerate, OldNamesAreRead) {
    EXPECT_EQ(accelerate("distributed_type: NO\nfp16: true\n").policies(), "Precision<Fp16>");
    EXPECT_EQ(accelerate("distributed_type: NO\ndynamo_backend: 'NO'\n").refusal(), "");
    EXPECT_EQ(accelerate("distributed_type: NO\ndynamo_config: {dynamo_backend: INDUCTOR, dynamo_mode: default}\n")
                  .findings.warnings(),
              1U)
        << "said once";
}

TEST_F(Accelerate, TheDefaultFileIsWhereAccelerateLooks) {
    EXPECT_EQ(find_accelerate_config(environment()), std::nullopt);
    variables_["HOME"] = folder_.path() / "home";
    EXPECT_EQ(find_accelerate_config(environment()), std::nullopt);
    write("home/.cache/huggingface/accelerate/default_config.json", "{}");
    EXPECT_EQ(find_accelerate_config(environment()),
              folder_.path() / "home/.cache/huggingface/accelerate/default_config.json");
    write("home/.cache/huggingface/accelerate/default_config.yaml", "");
    EXPECT_EQ(find_accelerate_config(environment())->filename(), "default_config.yaml");
    write("xdg/huggingface/accelerate/default_config.yaml", "");
    variables_["XDG_CACHE_HOME"] = folder_.path() / "xdg";
    EXPECT_EQ(find_accelerate_config(environment()), folder_.path() / "xdg/huggingface/accelerate/default_config.yaml");
    variables_["HF_HOME"] = "~/hub";
    write("home/hub/accelerate/default_config.yaml", "");
    EXPECT_EQ(find_accelerate_config(environment()), folder_.path() / "home/hub/accelerate/default_config.yaml");
}

TEST_F(Accelerate, TheCommandLineGoesBeforeTheEnvironmentAndThatBeforeTheFile) {
    write(
        "hub/accelerate/default_config.yaml",
        "distributed_type: DEEPSPEED\nmixed_precision: fp16\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 1\n  gradient_clipping: 0.5\n");
    variables_["HF_HOME"] = folder_.path() / "hub";
    variables_["ACCELERATE_MIXED_PRECISION"] = "bf16";
    variables_["ACCELERATE_DEEPSPEED_ZERO_STAGE"] = "2";
    Findings findings;
    const Intent intent = load_accelerate({"--zero_stage=3", "--num_processes", "8", "train.py", "--zero_stage", "0"},
                                          environment(), findings);
    EXPECT_NO_THROW(findings.throw_if_refused());
    EXPECT_EQ(intent.composition.stage, 3);
    EXPECT_EQ(intent.composition.precision, FormatName::bf16);
    EXPECT_EQ(intent.number("engine.max_grad_norm"), 0.5);
    EXPECT_EQ(intent.launch.ranks, 8);
    const auto place_of = [&](const std::string& key) {
        for (const Finding& one : findings.all())
            if (one.key == key) return one.place;
        return std::string{"nowhere"};
    };
    EXPECT_EQ(place_of("deepspeed_config.zero_stage"), "--zero_stage");
    EXPECT_EQ(place_of("mixed_precision"), "ACCELERATE_MIXED_PRECISION");
    EXPECT_NE(place_of("deepspeed_config.gradient_clipping").find("default_config.yaml:6:22"), std::string::npos);
}

TEST_F(Accelerate, FlagsAreThoseOfAccelerateLaunch) {
    Findings findings;
    const auto arguments =
        accelerate_arguments({"--use_fsdp", "--fsdp_offload_params", "--fsdp_sharding_strategy", "SHARD_GRAD_OP",
                              "--main_process_port=29501", "--max_restarts", "1", "-m", "train", "--x"},
                             findings);
    EXPECT_NO_THROW(findings.throw_if_refused());
    EXPECT_EQ(arguments.taken, 8U);
    EXPECT_EQ(read_accelerate(arguments.document.root, findings).composition,
              (Composition{.stage = 2, .state = KeptOn::all_on(TierName::cpu)}));
    EXPECT_EQ(arguments.document.root.find("main_process_port")->whole(), 29501);
    (void)accelerate_arguments({"--num_procesess", "2"}, findings);
    EXPECT_EQ(strata_test::thrown_by([&] { findings.throw_if_refused(); }).message,
              "[ST2601] --num_procesess: is no flag of `accelerate launch`. Fix: did you mean --num_processes.");
}

TEST_F(Accelerate, GpusOfThisMachineAreTextANumberAListOrAll) {
    for (const auto& [ids, gpus] :
         {std::pair{"'2, 3'", "2,3"}, {"2", "2"}, {"[0, 1]", "0,1"}, {"all", ""}, {"none", ""}})
        EXPECT_EQ(accelerate("distributed_type: MULTI_GPU\ngpu_ids: " + std::string{ids} + "\n").intent.launch.gpus,
                  gpus)
            << ids;
}

TEST_F(Accelerate, WhatIsWrittenIsReadAsTheSame) {
    for (
        const char* yaml :
        {"distributed_type: NO\n",
         "distributed_type: MULTI_GPU\nnum_processes: 4\nmixed_precision: fp16\nnum_machines: 2\nmachine_rank: 1\n"
         "main_process_ip: 10.0.0.1\nmain_process_port: 29500\ngpu_ids: '2,3'\n",
         "distributed_type: DEEPSPEED\nmixed_precision: 'no'\ndeepspeed_config: {zero_stage: 3, offload_optimizer_device: nvme, "
         "offload_optimizer_nvme_path: /a, offload_param_device: cpu, gradient_accumulation_steps: 4, gradient_clipping: 0.5, "
         "deepspeed_hostfile: hosts}\n",
         "distributed_type: FSDP\nfsdp_config: {fsdp_offload_params: true, fsdp_activation_checkpointing: true}\n"}) {
        const auto first = accelerate(yaml);
        ASSERT_EQ(first.refusal(), "");
        const auto second = accelerate(write_accelerate(first.intent));
        EXPECT_EQ(second.refusal(), "");
        EXPECT_EQ(first.intent, second.intent) << write_accelerate(first.intent);
    }
}

}  // namespace
