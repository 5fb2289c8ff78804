// Scripts that call a launcher: what their flags and the files that they name ask for, and what only a shell knows.

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/config/any_config.hpp>
#include <strata/config/launch_script.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::config;
using strata::Errc;
namespace fs = std::filesystem;

class LaunchScript : public testing::Test {
protected:
    strata_test::TemporaryFolder folder_;
    std::map<std::string, std::string> variables_;
    Findings findings_;

    void write(const std::string& name, const std::string& text) { std::ofstream{folder_.path() / name} << text; }
    Intent read(const std::string& text) {
        findings_ = {};
        return read_launch_script(text, "run.sh", findings_,
                                  {.folder = folder_.path(), .environment = [this](const std::string& name) {
                                       const auto found = variables_.find(name);
                                       return found == variables_.end() ? std::nullopt : std::optional{found->second};
                                   }});
    }
    /// "acts: launch: ranks", of a flag; "! " where it warns.
    [[nodiscard]] std::string said(const std::string& flag) const {
        for (const Finding& one : findings_.all())
            if (one.key == flag)
                return (one.warns ? "! " : "") + std::string{name_of(one.effect)} + ": " +
                       (one.to.empty() ? one.words : one.to);
        return "nothing";
    }
    [[nodiscard]] std::string problems() const {
        std::string all;
        for (const Finding& one : findings_.all())
            if (one.effect == Effect::refused) all += sentence(one) + ". Fix: " + one.fix + "\n";
        return all;
    }
};

TEST_F(LaunchScript, FlagsOfAccelerateGoBeforeItsFileAndTheProgramsWordsAreItsOwn) {
    write("a.yaml",
          "distributed_type: DEEPSPEED\nnum_processes: 8\nmixed_precision: fp16\ndeepspeed_config:\n  zero_stage: 2\n");
    const Intent intent = read(
        "#!/bin/bash\nexport STAGE=3\naccelerate launch --config_file a.yaml \\\n    --num_processes=4 --zero_stage $STAGE "
        "\\\n    --mixed_precision \"bf16\" train.py --num_processes 99 --learning_rate 1e-4 2>&1 | tee log\n");
    EXPECT_EQ(problems(), "");
    EXPECT_EQ(policies(intent.composition), "ZeroStage<3>, Precision<Bf16>");
    EXPECT_EQ(intent.launch.ranks, 4);
    EXPECT_EQ(said("--zero_stage"), "acts: ZeroStage<3>");
    EXPECT_EQ(said("(program)"), "no effect: the program that is started, with 4 words of its own, which are not read");
    for (const Finding& one : findings_.all())
        if (one.key == "--mixed_precision") {
            EXPECT_EQ(one.place, "run.sh:5:5");
        }
}

TEST_F(LaunchScript, VariablesOfTheScriptStandBetweenItsFileAndItsFlags) {
    write("a.yaml", "distributed_type: NO\nmixed_precision: fp16\nnum_processes: 2\n");
    const Intent intent =
        read("export ACCELERATE_MIXED_PRECISION=bf16\naccelerate launch --config_file=a.yaml --num_processes 3 t.py\n");
    EXPECT_EQ(intent.composition.precision, FormatName::bf16);
    EXPECT_EQ(intent.launch.ranks, 3);
}

TEST_F(LaunchScript, WithoutAFileTheTypeFollowsFromTheRanks) {
    EXPECT_EQ(read("accelerate launch --num_processes 2 t.py\n").composition.stage, 0);
    EXPECT_EQ(problems(), "");
    EXPECT_EQ(said("distributed_type"), "acts: ZeroStage<0>");
    EXPECT_EQ(read("accelerate launch --use_deepspeed --zero_stage 3 --offload_param_device cpu t.py").composition,
              (Composition{.stage = 3, .parameters = KeptOn::all_on(TierName::cpu)}));
}

TEST_F(LaunchScript, WhatOnlyAShellKnowsIsSaidAndAbsent) {
    const Intent intent = read(
        "srun accelerate launch --config_file configs/$KIND.yaml --num_machines $SLURM_NNODES --machine_rank "
        "$SLURM_PROCID --main_process_ip $(hostname) --gradient_accumulation_steps 4 \\\n  ${PROGRAM} $ARGS\n");
    EXPECT_EQ(problems(), "");
    for (const char* flag : {"--config_file", "--num_machines", "--machine_rank", "--main_process_ip"})
        EXPECT_EQ(said(flag), "no effect: left to the shell that runs it") << flag;
    EXPECT_FALSE(intent.composition.stage) << "the file would say it";
    EXPECT_EQ(intent.number("engine.gradient_accumulation_steps"), 4);
    EXPECT_EQ(intent.launch.machines, std::nullopt);
    const Intent known = read("#SBATCH --nodes=2\nsrun accelerate launch --num_machines $SLURM_NNODES t.py\n");
    EXPECT_EQ(known.launch.machines, 2);
}

TEST_F(LaunchScript, AFileThatIsNotThereIsAWarning) {
    const Intent intent = read("accelerate launch --config_file nowhere.yaml t.py\n");
    EXPECT_EQ(said("--config_file"), "! no effect: the file is not there, and what it says is not known");
    EXPECT_EQ(intent.missing_files, std::vector<std::string>{"nowhere.yaml"});
    EXPECT_EQ(problems(), "");
}

TEST_F(LaunchScript, DeepSpeedCountsTheRanksOfItsHostfile) {
    write("hosts", "a slots=4\nb slots=4\nc slots=2\n");
    EXPECT_EQ(read("deepspeed --hostfile hosts train.py").launch.ranks, 10);
    EXPECT_EQ(read("deepspeed -H hosts --num_nodes 2 --num_gpus 3 train.py").launch.ranks, 6);
    EXPECT_EQ(read("deepspeed --hostfile=hosts --include='a:0,1@c' train.py").launch.ranks, 4);
    EXPECT_EQ(read("deepspeed --hostfile hosts --exclude a train.py").launch.machines, 2);
    EXPECT_EQ(read("deepspeed --include localhost:0,1,5 --master_port 1234 train.py").launch.ranks, 3);
    const Intent two = read("deepspeed --num_gpus=2 --num_nodes=3 train.py");
    EXPECT_EQ(two.launch.ranks, 6);
    EXPECT_EQ(two.launch.machines, 3);
    (void)read("deepspeed --hostfile hosts --num_gpus 3 train.py");
    EXPECT_EQ(problems(),
              "run.sh:1:28: --num_gpus is 3, and 'c' has 2 slots. Fix: give at most as many as every machine has\n");
    (void)read("deepspeed --hostfile hosts --include d train.py");
    EXPECT_NE(problems().find("run.sh:1:28: --include "), std::string::npos) << problems();
}

TEST_F(LaunchScript, TheFileThatTheProgramIsGivenIsRead) {
    write("ds.json",
          R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 1}})");
    const Intent intent = read("deepspeed --num_gpus 2 train.py --deepspeed ds.json --lr 1\n");
    EXPECT_EQ(problems(), "");
    EXPECT_EQ(intent.composition.stage, 1);
    EXPECT_EQ(intent.batch.global, 12);
    (void)read("deepspeed --num_gpus 5 train.py --deepspeed_config=ds.json\n");
    EXPECT_NE(problems().find("12 != 2 * 1 * 5"), std::string::npos) << problems();
    EXPECT_EQ(read("deepspeed train.py --deepspeed --deepspeed_config ds.json").composition.stage, 1)
        << "the first one has no value";
}

TEST_F(LaunchScript, TorchrunIsReadUnderAllOfItsNames) {
    for (const char* name : {"torchrun", "python -m torch.distributed.run", "/opt/bin/torchrun"}) {
        const Intent intent = read(std::string{name} +
                                   " --nproc-per-node=4 --nnodes 2 --node_rank 1 --rdzv_endpoint "
                                   "10.0.0.1:29501 --rdzv_backend=c10d t.py --x\n");
        EXPECT_EQ(problems(), "");
        EXPECT_EQ(intent.launch.ranks, 8);
        EXPECT_EQ(intent.launch.machine_rank, 1);
        EXPECT_EQ(intent.launch.main_address, "10.0.0.1");
        EXPECT_EQ(intent.launch.main_port, 29501);
    }
    EXPECT_EQ(read("torchrun --nproc_per_node=gpu t.py").launch.ranks, std::nullopt);
    EXPECT_EQ(said("--nproc_per_node"),
              "no effect: how many there are is known where it runs: `strata launch -n N` says it");
    (void)read("torchrun --rdzv_endpoint host:99999 t.py");
    EXPECT_NE(problems().find("whose port is none from 0 to 65535"), std::string::npos);
}

TEST_F(LaunchScript, AFlagThatIsMisspeltIsAnsweredWithTheNearestAndAllAreTold) {
    (void)read("deepspeed --num_gpu 2 --hostfil x train.py\n");
    EXPECT_EQ(problems(),
              "run.sh:1:11: --num_gpu is no flag of `deepspeed`. Fix: did you mean --num_gpus\n"
              "run.sh:1:23: --hostfil is no flag of `deepspeed`. Fix: did you mean --hostfile\n");
    (void)read("accelerate launch --num_proceses 2 --machine_rank 3 train.py\n");
    EXPECT_NE(problems().find("did you mean --num_processes"), std::string::npos) << problems();
    EXPECT_NE(problems().find("run.sh:1:36: --machine_rank is 3, and there is 1 machine"), std::string::npos);
    (void)read("deepspeed --num_gpus two train.py\n");
    EXPECT_NE(problems().find("run.sh:1:11: --num_gpus is \"two\", not a whole number"), std::string::npos)
        << problems();
}

TEST_F(LaunchScript, CallsAreFoundWhereShellsHaveThem) {
    for (const char* script :
         {"cd x && deepspeed --num_gpus 2 t.py", "if true; then\n  deepspeed --num_gpus 2 t.py\nfi\n",
          "CMD=\"deepspeed --num_gpus 2 t.py\"\n$CMD\n", "srun --nodes=1 bash -c 'deepspeed --num_gpus 2 t.py'\n",
          "NCCL_DEBUG=INFO nohup deepspeed --num_gpus 2 t.py > log 2>&1 &\n", "uv run deepspeed --num_gpus 2 t.py",
          "# deepspeed --num_gpus 8 t.py\ndeepspeed --num_gpus 2 t.py\n",
          "cat > ds.json <<EOF\ndeepspeed --num_gpus 8 t.py\nEOF\ndeepspeed --num_gpus 2 t.py\n",
          "N=2\nfor i in 1; do deepspeed --num_gpus ${N:-8} t.py; done\n"})
        EXPECT_EQ(read(script).launch.ranks, 2) << script;
    for (const char* script : {"pip install deepspeed", "echo deepspeed is here", "python train.py --deepspeed ds.json",
                               "export A=1\nexport B=2\n", "{\"deepspeed\": {\"stage\": 1}}", ""})
        EXPECT_FALSE(has_launch_line(script)) << script;
    (void)read("deepspeed --num_gpus 2 a.py\ndeepspeed --num_gpus 4 b.py\n");
    EXPECT_EQ(said("(call 2)"), "! no effect: another call of a launcher, which is not read: the first is");
}

TEST_F(LaunchScript, AScriptAndAHostfileAreKnownByWhatTheyHold) {
    write("run.sh", "deepspeed --num_gpus 2 t.py\n");
    write("hosts", "# mine\na slots=2\nb slots=2\n");
    write("config.env", "export OPTIMIZER=lion\n");
    EXPECT_EQ(look_at_config(folder_.path() / "run.sh").format, ConfigFormat::launch);
    const AnyConfig hosts = look_at_config(folder_.path() / "hosts");
    EXPECT_EQ(hosts.format, ConfigFormat::launch);
    EXPECT_EQ(hosts.intent.launch.ranks, 4);
    EXPECT_EQ(look_at_config(folder_.path() / "config.env").format, ConfigFormat::trainer);
    const AnyConfig none = look_at_config(folder_.path() / "config.env", {}, ConfigFormat::launch);
    EXPECT_EQ(none.findings.refused(), 1U) << "no call in it";
}

}  // namespace
