// `strata train` as people meet it: their files in, a table of what was understood, a trainer that runs.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "run_tool.hpp"
#include "train_folder.hpp"

namespace {

namespace fs = std::filesystem;
using strata_test::Outcome;
using strata_test::Running;
using strata_test::text_of;

/// Twelve pictures with captions, and a list of them.
struct TrainCommand : strata_test::TrainFolder {
    void SetUp() override {
        write_pictures(12, [](int i) { return "colour " + std::to_string(i); });
        write_list();
        write_config(R"("mixed_precision": "bf16")");
    }
    /// SimpleTuner's keys, as it writes them, and more.
    void write_config(const std::string& keys) const {
        write("config.json", R"({"--data_backend_config": ")" + path("list.json") + R"(", "--output_dir": ")" +
                                 path("output") +
                                 R"(", "--model_family": "small", "--model_type": "full", "--seed": 42,
 "--aspect_bucket_alignment": 16, "--train_batch_size": 2, "--max_train_steps": 3, "--learning_rate": "1e-3",
 "--lr_scheduler": "constant", "--validation_disable": true, "--report_to": "wandb", )" +
                                 keys + "}");
    }
};

TEST_F(TrainCommand, ADryRunTellsEveryKeyOfEveryFileAndTheTrainer) {
    write("default_config.yaml", "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 2\n");
    write("ds.json", R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"},
 "offload_param": {"device": "cpu"}}, "gradient_clipping": 0.5, "train_micro_batch_size_per_gpu": 4})");
    const Outcome outcome = train({path("ds.json"), path("config.json"), path("default_config.yaml"), "--dry-run",
                                   "--optimizer", "adamw", "--gradient_checkpointing"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_words(outcome.out,
                 {"key", "value", "from", "effect", path("config.json") + "\n", path("ds.json") + "\n", " 1:33",
                  path("default_config.yaml") + "\n", " 2:18", "(command line and environment)\n",
                  "engine.max_grad_norm", "schedule.lr", "metrics go to metrics.jsonl", "Optimizer<AdamW>", "list.json",
                  "model    SmallFlux, from random weights",
                  "trainer  Trainer<SmallFlux, ZeroStage<3>, OffloadTarget<Cpu, OptimizerState, Parameters>, "
                  "Precision<Bf16>, Recompute<Blocks>>",
                  "batch    8 samples a step: 2 ranks x 4 samples x 1 micro-batch"});
    EXPECT_FALSE(fs::exists(folder / "output"));
    EXPECT_TRUE(outcome.err.empty()) << outcome.err;
}

TEST_F(TrainCommand, ASimpleTunerFolderTrainsAsItIs) {
    const Outcome outcome = train({folder.string(), "-n", "2"});
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    expect_words(outcome.out, {"model    SmallFlux, from random weights", "ZeroStage<2>"});
    EXPECT_EQ(losses_in(folder / "output").size(), 3U);
    EXPECT_TRUE(fs::exists(folder / "output" / "report.html"));
}

/// A full-rank configuration that somebody has on GitHub, and its dataset list: photographs in place of theirs, paths of
/// this folder, and two steps instead of ten thousand.
TEST_F(TrainCommand, ARealSimpleTunerFolderTrainsWithNothingEditedButPathsAndTheModel) {
    const fs::path reference = STRATA_REFERENCE_DIR;
    const fs::path configs = reference / "data/configs/simpletuner";
    const fs::path list = configs / "121_multidatabackend-multiresolution-test.json";
    if (reference.empty() || !fs::exists(list))
        GTEST_SKIP() << "no reference material: configure with -DSTRATA_REFERENCE_DIR=/path";
    const auto with = [](std::string text, const std::string& from, const std::string& to) {
        for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
            text.replace(at, from.size(), to);
        return text;
    };
    fs::create_directories(folder / "real/config");
    write(
        "real/config/multidatabackend-multiresolution-test.json",
        with(with(text_of(list), "./datasets/quilt-1m/quilt_1m_samples", path("photos")), "./test/", path("caches/")));
    write("real/config.json", with(text_of(configs / "040_config.json"), "test/models", path("output")));
    fs::create_directories(folder / "photos");
    for (const char* name : {"japanese-shop", "book-beside-flowers", "mongolels", "tanners_ridge"})
        for (const char* extension : {".jpg", ".txt"})
            fs::copy_file(reference / "data/images/photos/immich" / (std::string{name} + extension),
                          folder / "photos" / (std::string{name} + extension));
    const Outcome outcome = train({path("real"), "--max_train_steps", "2", "--lr_warmup_steps", "0",
                                   "--validation_disable", "--allow_dataset_oversubscription", "--model_family",
                                   "small", "--pretrained_model_name_or_path", "null"});
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    expect_words(outcome.out,
                 {"Precision<PureBf16>, Recompute<Blocks>", "4 micro-batches", "SmallFlux, from random weights"});
    EXPECT_EQ(losses_in(folder / "output").size(), 2U);
}

TEST_F(TrainCommand, PlacesAndRecomputationChangeNoBit) {
    write("ds.json", R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": ")" +
                         path("nvme") + R"("}, "offload_param": {"device": "nvme", "nvme_path": ")" + path("nvme") +
                         R"("}}})");
    fs::create_directories(folder / "nvme");
    const Outcome plain = train({path("config.json"), "--output", path("plain")});
    ASSERT_EQ(plain.status, 0) << plain.out << plain.err;
    const Outcome offloaded = train({path("config.json"), path("ds.json"), "--output", path("offloaded"),
                                     "--gradient_checkpointing", "--gradient_checkpointing_interval", "2"});
    ASSERT_EQ(offloaded.status, 0) << offloaded.out << offloaded.err;
    expect_words(offloaded.out, {"OffloadTarget<Nvme, OptimizerState, Parameters>", "Recompute<EveryOther<2>>"});
    EXPECT_EQ(losses_in(folder / "plain"), losses_in(folder / "offloaded"));
    EXPECT_EQ(losses_in(folder / "plain").size(), 3U);
}

TEST_F(TrainCommand, FlagsGoBeforeDeepSpeedAndThatBeforeTheTrainersFile) {
    write("ds.json", R"({"optimizer": {"type": "Adam", "params": {"lr": 5e-4}}, "gradient_accumulation_steps": 2})");
    const Outcome file = train({path("config.json"), path("ds.json"), "--max_train_steps=1"});
    ASSERT_EQ(file.status, 0) << file.out << file.err;
    ASSERT_EQ(steps_in(folder / "output").size(), 1U);
    EXPECT_DOUBLE_EQ(steps_in(folder / "output").front().at("lr").get<double>(), 5e-4);
    const Outcome flag =
        train({path("config.json"), path("ds.json"), "--learning_rate", "2e-4", "--max_train_steps", "1", "--fresh"});
    ASSERT_EQ(flag.status, 0) << flag.out << flag.err;
    EXPECT_DOUBLE_EQ(steps_in(folder / "output").front().at("lr").get<double>(), 2e-4);
}

TEST_F(TrainCommand, TheEnvironmentGoesBeforeAcceleratesFileAndFlagsBeforeBoth) {
    write("accelerate.yaml", "distributed_type: DEEPSPEED\nmixed_precision: bf16\n");
    write_config(R"("max_grad_norm": 1)");
    ::setenv("ACCELERATE_MIXED_PRECISION", "fp16", 1);
    const Outcome variable = train({path("config.json"), path("accelerate.yaml"), "--dry-run"});
    const Outcome flag = train({path("config.json"), path("accelerate.yaml"), "--dry-run", "--mixed_precision", "no"});
    ::unsetenv("ACCELERATE_MIXED_PRECISION");
    expect_words(variable.out, {"Trainer<SmallFlux, ZeroStage<2>, Precision<Fp16>>", "ACCELERATE_MIXED_PRECISION"});
    expect_words(flag.out, {"Trainer<SmallFlux, ZeroStage<2>>", "(command line and environment)"});
}

TEST_F(TrainCommand, ADeepSpeedFileAndFlagsAreEnough) {
    write("ds.json", R"({"train_batch_size": 8, "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": 1}})");
    const Outcome outcome =
        train({path("ds.json"), "-n", "2", "--data_backend_config", path("list.json"), "--max_train_steps", "2",
               "--aspect_bucket_alignment", "16", "--output_dir", path("output"), "--validation_resolution", "64"});
    ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    expect_words(outcome.out, {"ZeroStage<1>", "8 samples a step: 2 ranks x 2 samples x 2 micro-batches"});
    EXPECT_EQ(steps_in(folder / "output").size(), 2U);
}

TEST_F(TrainCommand, AllProblemsOfAllFilesComeBeforeARankIsStarted) {
    write_config(R"("--learing_rate": 1, "--lr_warmup_steps": -1)");
    write("list.json", R"([{"id": "a", "type": "local", "instance_data_dir": "x", "repets": 1}])");
    write("ds.json", R"({"zero_optimization": {"stage": 9}})");
    const Outcome outcome = train({path("config.json"), path("ds.json"), "-n", "2", "--lr_scheduler", "cosinus"});
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    expect_words(outcome.err, {"learing_rate is unknown", "lr_warmup_steps", "repets", "stage is 9", "cosinus"});
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
    EXPECT_FALSE(fs::exists(folder / "output"));
}

TEST_F(TrainCommand, ACompositionThatIsNotThereIsRefusedWithTheNearest) {
    write("ds.json",
          R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/tmp"}},
 "optimizer": {"type": "Lamb", "params": {"lr": 1e-3}}})");
    const Outcome outcome = train({path("config.json"), path("ds.json")});
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    expect_words(outcome.err, {"OffloadTarget<Nvme>, Optimizer<Lamb>", "the nearest has", "ds.json:"});
}

TEST_F(TrainCommand, ABatchThatSoManyRanksCannotHaveIsTheSentencePeopleKnow) {
    write("ds.json", R"({"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2})");
    const Outcome outcome = train({path("config.json"), path("ds.json"), "-n", "2", "--dry-run"});
    EXPECT_EQ(outcome.status, 1) << outcome.out;
    expect_words(outcome.err, {"train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size",
                               "(1) set train_batch_size to"});
}

/// As with `strata launch`: from before main on a signal is held, and files are read only then.
TEST_F(TrainCommand, AStopWhileFilesAreReadStartsNothingAndLosesNothing) {
    const auto holds = [](pid_t process) {
        const std::string at = "/proc/" + std::to_string(process);
        std::error_code none;
        if (fs::read_symlink(at + "/exe", none) != fs::canonical(STRATA_TOOL)) return false;
        const std::string text = text_of(at + "/status");
        const auto mask = text.find("SigBlk:\t");
        return mask != std::string::npos &&
               (std::stoull(text.substr(mask + 8, 16), nullptr, 16) & (1ULL << (SIGINT - 1))) != 0;
    };
    for (int attempt = 0; attempt < 3; ++attempt) {
        Running running{{STRATA_TOOL, "train", path("config.json")}, folder};
        while (!holds(running.pid())) ASSERT_FALSE(running.has_ended());
        std::this_thread::sleep_for(std::chrono::milliseconds{20 * attempt});
        running.signal(SIGINT);
        const Outcome outcome = running.wait();
        EXPECT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(outcome.err, "stopped before training began; nothing was started\n");
    }
}

TEST_F(TrainCommand, WordsThatMakeNoSenseAreAnswered) {
    write("second.json", R"({"learning_rate": 1e-4, "max_train_steps": 1})");
    write("machines.yaml", "distributed_type: DEEPSPEED\nnum_machines: 2\nnum_processes: 16\n");
    write("run.sh", "accelerate launch --num_processes 2 train.py\n");
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
        {{}, "strata train needs a CONFIG"},
        {{path("config.json"), path("second.json")}, "are both trainer configurations"},
        {{path("config.json"), path("machines.yaml")}, "is for 2 machines"},
        {{path("config.json"), "-n", "0"}, "-n is '0'"},
        {{path("config.json"), "-m"}, "strata train has no option -m"},
        {{path("config.json"), "--seed"}, "--seed needs a value"},
        {{path("config.json"), "--learing_rate", "1e-4"}, "learning_rate"},
        {{path("nowhere.json")}, "nowhere.json"},
        {{path("run.sh")}, "is a script or a hostfile"},
    };
    for (const auto& [words, says] : cases) {
        const Outcome outcome = train(words);
        EXPECT_NE(outcome.status, 0) << says;
        EXPECT_NE(outcome.err.find(says), std::string::npos) << says << "\n" << outcome.err << outcome.out;
        EXPECT_NE(outcome.err.find("Fix: "), std::string::npos) << outcome.err;
    }
}

}  // namespace
