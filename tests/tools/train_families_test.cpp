// Models of the ecosystem's folders, trained by `strata train` and by examples/finetune: tiny, and whole.

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <strata/storage/safetensors.hpp>
#include <strata/weights/weight_files.hpp>

#include "../support/golden_pipeline.hpp"
#include "../support/made_pipeline.hpp"
#include "train_folder.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using strata::weights::WeightFiles;
using strata_test::Outcome;
using strata_test::PipelineKind;
using strata_test::trained_part;

/// Six pictures, which are evaluated as well, and a pipeline in model/.
struct TrainFamilies : strata_test::TrainFolder {
    void SetUp() override {
        const std::vector<std::string> captions{"a cat", "a dog", "cats and dogs", "a red cat!", "dog's", "no words"};
        write_pictures(6, [&](int i) { return captions.at(static_cast<std::size_t>(i)); });
        write_list(R"(, {"id": "seen", "type": "local", "dataset_type": "eval", "resolution": 64,
 "instance_data_dir": ")" +
                   path("pictures") + R"(", "cache_dir_vae": ")" + path("vae_seen") + "\"}");
    }
    /// Names the model, and trains so fast that four steps are seen.
    void write_config(const std::string& family, const json& more = {}) const {
        json config{{"data_backend_config", path("list.json")},
                    {"model_family", family},
                    {"mixed_precision", "bf16"},
                    {"aspect_bucket_alignment", 16},
                    {"train_batch_size", 1},
                    {"learning_rate", 1e-3},
                    {"lr_scheduler", "constant"},
                    {"max_train_steps", 4},
                    {"eval_steps_interval", 2},
                    {"tokenizer_max_length", 16},
                    {"validation_disable", true}};
        if (family != "small") config["pretrained_model_name_or_path"] = path("model");
        if (more.is_object()) config.update(more);
        write("config.json", config.dump());
    }
    /// Losses of the set "seen".
    [[nodiscard]] static std::vector<double> evaluations_in(const fs::path& output) {
        std::vector<double> losses;
        std::istringstream lines{strata_test::text_of(output / "metrics.jsonl")};
        for (std::string line; std::getline(lines, line);) {
            const json one = json::parse(line);
            if (one.contains("evaluations")) losses.push_back(one.at("evaluations").at("seen").get<double>());
        }
        return losses;
    }
    /// Trains at a stage without a pause, and at stage 3 with one behind step 2: every loss has the same bits.
    void expect_equal_stages(const std::string& stage, const std::string& ranks) const {
        const std::vector<std::string> words{path("config.json"), "-n", ranks, "--checkpoint_step_interval", "2"};
        const auto with = [&](std::vector<std::string> more) {
            more.insert(more.begin(), words.begin(), words.end());
            return train(more);
        };
        write("stage.json", R"({"zero_optimization": {"stage": )" + stage + "}}");
        write("stage3.json", R"({"zero_optimization": {"stage": 3}})");
        const Outcome whole = with({path("stage.json"), "--output", path("whole")});
        ASSERT_EQ(whole.status, 0) << whole.out << whole.err;
        const Outcome half = with({path("stage3.json"), "--output", path("paused"), "--max_train_steps", "2"});
        ASSERT_EQ(half.status, 0) << half.out << half.err;
        const Outcome rest = with({path("stage3.json"), "--output", path("paused"), "--gradient_checkpointing"});
        ASSERT_EQ(rest.status, 0) << rest.out << rest.err;
        expect_words(rest.out, {"resuming from", "ZeroStage<3>", "Recompute<Blocks>"});
        EXPECT_EQ(losses_in(folder / "whole").size(), 4U);
        EXPECT_EQ(losses_in(folder / "whole"), losses_in(folder / "paused"));
        expect_learnt(folder / "whole");
    }
    /// The error that is the same each time has become less.
    static void expect_learnt(const fs::path& output) {
        const std::vector<double> seen = evaluations_in(output);
        ASSERT_GE(seen.size(), 2U) << strata_test::text_of(output / "metrics.jsonl");
        EXPECT_LT(seen.back(), seen.front());
        for (const double loss : losses_in(output)) EXPECT_TRUE(std::isfinite(loss));
    }
    /// The example, on the model of config.json.
    Outcome finetune(const std::string& ranks, std::vector<std::string> more = {}) const {
        more.insert(more.begin(), {STRATA_TOOL, "launch", "-n", ranks, "--", STRATA_FINETUNE, "--config",
                                   path("config.json"), "--output", path("tuned")});
        return run(more);
    }
    /// In bf16 and under the names of what was trained; not what it was.
    void expect_written(PipelineKind kind) const {
        const WeightFiles before{folder / "model" / trained_part(kind)}, after{folder / "tuned/model.safetensors"};
        ASSERT_EQ(before.tensors().size(), after.tensors().size());
        for (const auto& [name, tensor] : before.tensors()) {
            const WeightFiles::Tensor* const trained = after.find(name);
            ASSERT_NE(trained, nullptr) << name;
            EXPECT_EQ(trained->entry->shape, tensor.entry->shape) << name;
            EXPECT_EQ(trained->entry->dtype, strata::storage::Dtype::bf16) << name;
        }
    }
};

TEST_F(TrainFamilies, FluxTrainsTheSameAtStagesTwoAndThreeOnTwoRanks) {
    strata_test::write_pipeline(folder / "model", PipelineKind::flux);
    write_config("flux");
    expect_equal_stages("2", "2");
}

TEST_F(TrainFamilies, SdxlTrainsTheSameAtStagesZeroAndThreeOnTwoRanks) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sdxl);
    write_config("sdxl");
    expect_equal_stages("0", "2");
}

TEST_F(TrainFamilies, StableDiffusion15TrainsTheSameAtStagesOneAndThree) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sd15);
    write_config("sd15");
    expect_equal_stages("1", "1");
}

TEST_F(TrainFamilies, TheExampleTrainsWhatTheConfigurationNames) {
    strata_test::write_pipeline(folder / "model", PipelineKind::flux);
    write_config("flux", {{"validation_disable", false},
                          {"validation_step_interval", 4},
                          {"validation_resolution", 32},
                          {"validation_num_inference_steps", 2},
                          {"validation_prompts", {"a cat", "a dog"}}});
    const Outcome flux = finetune("2");
    ASSERT_EQ(flux.status, 0) << flux.out << flux.err;
    expect_learnt(folder / "tuned");
    expect_written(PipelineKind::flux);
    EXPECT_TRUE(fs::exists(folder / "tuned/samples/step_00000004.png")) << flux.out;

    write_config("small");
    const Outcome small = finetune("1", {"--fresh"});
    ASSERT_EQ(small.status, 0) << small.out << small.err;
    expect_learnt(folder / "tuned");
}

TEST_F(TrainFamilies, TheExampleTrainsTheGoldenFluxAndSdxl) {
    if (!strata_test::has_golden_pipelines()) GTEST_SKIP() << strata_test::no_golden_pipelines;
    for (const PipelineKind kind : {PipelineKind::flux, PipelineKind::sdxl}) {
        fs::remove_all(folder / "model");
        strata_test::write_golden_pipeline(folder / "model", kind);
        write_config(kind == PipelineKind::flux ? "flux" : "sdxl");
        const Outcome outcome = finetune("2", {"--fresh"});
        ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        expect_learnt(folder / "tuned");
        expect_written(kind);
    }
}

TEST_F(TrainFamilies, TheExampleTrainsAdapters) {
    for (const PipelineKind kind : {PipelineKind::flux, PipelineKind::sdxl}) {
        fs::remove_all(folder / "model");
        strata_test::write_pipeline(folder / "model", kind);
        write_config(kind == PipelineKind::flux ? "flux" : "sdxl",
                     {{"model_type", "lora"}, {"lora_rank", 2}, {"learning_rate", 1e-2}});
        const Outcome outcome = finetune("2", {"--fresh"});
        ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        expect_learnt(folder / "tuned");
        EXPECT_FALSE(fs::exists(folder / "tuned/model.safetensors"));
        const WeightFiles adapter{folder / "tuned/pytorch_lora_weights.safetensors"};
        for (const auto& [name, tensor] : adapter.tensors())
            EXPECT_TRUE(name.starts_with(kind == PipelineKind::flux ? "transformer." : "unet.")) << name;
    }
}

/// Losses of all stages are equal bit by bit, the base is what it was, and what is left is the adapter alone.
TEST_F(TrainFamilies, AdaptersTrainTheSameAtStagesZeroAndThree) {
    for (const PipelineKind kind : {PipelineKind::flux, PipelineKind::sdxl}) {
        fs::remove_all(folder / "model");
        strata_test::write_pipeline(folder / "model", kind);
        const bool is_flux = kind == PipelineKind::flux;
        write_config(is_flux ? "flux" : "sdxl", {{"model_type", "lora"}, {"lora_rank", 2}, {"learning_rate", 1e-2}});
        write("stage3.json", R"({"zero_optimization": {"stage": 3}})");
        write("stage0.json", R"({"zero_optimization": {"stage": 0}})");
        for (const char* stage : {"stage0", "stage3"}) {
            const Outcome outcome = train({path("config.json"), path(std::string{stage} + ".json"), "-n", "2",
                                           "--output", path(stage), "--fresh"});
            ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
            expect_words(outcome.out, {"Adapter<Lora>"});
            EXPECT_TRUE(fs::exists(folder / stage / "pytorch_lora_weights.safetensors"));
        }
        EXPECT_EQ(losses_in(folder / "stage0"), losses_in(folder / "stage3"));
        EXPECT_EQ(losses_in(folder / "stage0").size(), 4U);
        expect_learnt(folder / "stage3");
        const WeightFiles adapter{folder / "stage3/pytorch_lora_weights.safetensors"};
        for (const auto& [name, tensor] : adapter.tensors())
            EXPECT_TRUE(name.starts_with(is_flux ? "transformer." : "unet.")) << name;
    }
}

TEST_F(TrainFamilies, AQuantisedBaseIsTrainedOverAtStageThree) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sdxl);
    write("lycoris.json", R"({"algo": "lokr", "linear_dim": 4, "linear_alpha": 4, "factor": 4,
                             "apply_preset": {"target_module": ["Attention"]}})");
    for (const char* precision : {"int8-quanto", "nf4-bnb"}) {
        write_config("sdxl", {{"model_type", "lora"},
                              {"lora_type", "lycoris"},
                              {"lycoris_config", path("lycoris.json")},
                              {"base_model_precision", precision},
                              {"learning_rate", 1e-2}});
        const Outcome outcome = train({path("config.json"), "-n", "2", "--output", path("run"), "--fresh"});
        ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
        expect_words(outcome.out, {"Adapter<Lokr>, ZeroStage<3>", "FrozenWeights<"});
        for (const double loss : losses_in(folder / "run")) EXPECT_TRUE(std::isfinite(loss));
        EXPECT_TRUE(fs::exists(folder / "run/pytorch_lora_weights.safetensors"));
    }
    const Outcome below = train({path("config.json"), "--deepspeed_config", "zero2", "--dry-run"});
    EXPECT_EQ(below.status, 1);
    expect_words(below.err, {"no composition", "ZeroStage<3>", "Fix: "});
}

TEST_F(TrainFamilies, ARunThatBeginsWithItsOwnWeightsIsNotStartedOver) {
    strata_test::write_pipeline(folder / "model", PipelineKind::sd15);
    fs::create_directories(folder / "run" / "checkpoints");
    const fs::path own = folder / "run" / "model.safetensors";
    fs::copy_file(folder / "model" / trained_part(PipelineKind::sd15) / "diffusion_pytorch_model.safetensors", own);
    write_config("sd15", {{"pretrained_unet_model_name_or_path", own.string()}});
    const Outcome outcome = train({path("config.json"), "-n", "2", "--output", path("run"), "--fresh"});
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    expect_words(outcome.err, {"ST2105", own.string(), "--fresh", "Fix: "});
    EXPECT_TRUE(fs::exists(own));
    EXPECT_TRUE(fs::exists(folder / "run" / "checkpoints"));
    EXPECT_FALSE(fs::exists(folder / "vae")) << "it was refused before pictures were encoded";
}

TEST_F(TrainFamilies, ADryRunSaysWhichModelAndFromWhere) {
    write_config("sdxl");
    const Outcome outcome = train({path("config.json"), "--dry-run"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    expect_words(outcome.out,
                 {"model    ", path("model"), "trainer  Trainer<SdxlUnet, ZeroStage<2>, Precision<Bf16>>"});
}

TEST_F(TrainFamilies, AModelThatIsNotThereIsToldWithThoseThatAre) {
    write_config("sd3");
    const Outcome other = train({path("config.json")});
    EXPECT_EQ(other.status, 1) << other.out;
    expect_words(other.err, {"sd3", "flux", "sdxl", "sd15", "small", "Fix: "});

    write_config("flux", {{"pretrained_model_name_or_path", ""}});
    const Outcome nowhere = train({path("config.json")});
    EXPECT_EQ(nowhere.status, 1) << nowhere.out;
    expect_words(nowhere.err, {"where the files of Flux.1 are", "pretrained_model_name_or_path"});

    write_config("flux");  // and there is no such folder
    const Outcome absent = train({path("config.json"), "--output", path("absent")});
    EXPECT_EQ(absent.status, 2) << absent.out;
    expect_words(absent.err, {path("model"), "Fix: "});
}

}  // namespace
