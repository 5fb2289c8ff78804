// `strata memory` as a person meets it: a table of trainers for a model that is never made, or one sentence.

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "../support/temporary_folder.hpp"
#include "run_tool.hpp"

namespace {

namespace fs = std::filesystem;
using strata_test::Outcome;
using strata_test::Running;

struct MemoryCommand : testing::Test {
    strata_test::TemporaryFolder temporary;
    fs::path folder = temporary.path();

    Outcome strata(std::vector<std::string> words) {
        words.insert(words.begin(), {STRATA_TOOL, "memory"});
        return Running{std::move(words), folder}.wait();
    }
};

TEST_F(MemoryCommand, PrintsTrainersSideBySide) {
    const Outcome outcome = strata({"small", "--ranks", "1,3"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("| trainer, GB a rank | 1 rank | 3 ranks |"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("| `ZeroStage<3>, OffloadTarget<Nvme>` |"), std::string::npos) << outcome.out;
}

TEST_F(MemoryCommand, ReadsTheConfigOfAPipeline) {
    fs::create_directories(folder / "pipeline" / "transformer");
    std::ofstream{folder / "pipeline" / "transformer" / "config.json"}
        << R"({"_class_name": "FluxTransformer2DModel", "in_channels": 64, "num_layers": 19, "num_single_layers": 38,
               "attention_head_dim": 128, "num_attention_heads": 24, "joint_attention_dim": 4096,
               "pooled_projection_dim": 768, "guidance_embeds": false, "axes_dims_rope": [16, 56, 56]})";
    const Outcome outcome = strata({(folder / "pipeline").string()});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("11,891,178,560 parameters"), std::string::npos) << outcome.out;
}

TEST_F(MemoryCommand, TakesAConfigurationAndItsNumbers) {
    std::ofstream{folder / "config.json"}
        << R"({"model_family": "small", "data_backend_config": "list.json", "gradient_accumulation_steps": 4})";
    const Outcome file = strata({(folder / "config.json").string(), "--ranks", "2"});
    EXPECT_EQ(file.status, 0) << file.err;
    EXPECT_NE(file.out.find("4 micro-batches a step"), std::string::npos) << file.out;
    const auto table = [](const std::string& out) { return out.substr(out.find("| trainer,")); };
    EXPECT_EQ(table(strata({folder.string(), "--ranks", "2"}).out), table(file.out));
    std::ofstream{folder / "config.json"} << R"({"model_family": "sd9"})";
    EXPECT_EQ(strata({(folder / "config.json").string()}).status, 1);
}

TEST_F(MemoryCommand, RefusesWhatIsNoModel) {
    const Outcome unknown = strata({"fluxx"});
    EXPECT_EQ(unknown.status, 2) << unknown.err;
    EXPECT_NE(unknown.err.find("there is no model 'fluxx'"), std::string::npos) << unknown.err;
    EXPECT_EQ(strata({"small", "--ranks", "1,none"}).status, 2);
    EXPECT_EQ(strata({folder.string()}).status, 1) << "a folder without config.json";
}

}  // namespace
