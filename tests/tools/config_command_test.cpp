// `strata config` as a person and a script meet it: what it prints, how it ends, and that the pages it makes are current.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "../support/temporary_folder.hpp"
#include "run_tool.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using strata_test::Outcome;
using strata_test::Running;
using strata_test::text_of;

struct ConfigCommand : testing::Test {
    strata_test::TemporaryFolder temporary;
    fs::path folder = temporary.path();

    void write(const std::string& name, const std::string& text) const { std::ofstream{folder / name} << text; }
    Outcome strata(std::vector<std::string> words) {
        words.insert(words.begin(), {STRATA_TOOL, "config"});
        return Running{words, folder}.wait();
    }
    [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }
};

TEST_F(ConfigCommand, CheckTellsAllProblemsOfAllFilesAndEndsWithOne) {
    write("config.json", "{\n  \"learing_rate\": 1,\n  \"train_batch_size\": 0,\n  \"report_to\": \"wandb\"\n}");
    write("ds.json", "{\"zero_optimization\": {\"stage\": 9}, \"train_batch_size\": 8}");
    const Outcome outcome = strata({"check", path("config.json"), path("ds.json")});
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    for (const char* says :
         {"config.json:2:19: /learing_rate is unknown. Fix: did you mean 'learning_rate'",
          "config.json:3:23: /train_batch_size is 0, out of its range", "a trainer's configuration, ", "2 problems",
          "warning: ", "metrics go to metrics.jsonl", "DeepSpeed, ", "ds.json:1:33: /zero_optimization/stage is 9"})
        EXPECT_NE(outcome.out.find(says), std::string::npos) << says << "\n" << outcome.out;
    EXPECT_TRUE(outcome.err.empty()) << outcome.err;
}

TEST_F(ConfigCommand, AFileThatIsGoodEndsWithNoughtAndAWarningDoesNotChangeThat) {
    write("config.json", R"({"learning_rate": 1e-4, "report_to": "wandb"})");
    const Outcome outcome = strata({"check", path("config.json")});
    EXPECT_EQ(outcome.status, 0) << outcome.out;
    EXPECT_NE(outcome.out.find("0 problems, 1 warning"), std::string::npos) << outcome.out;
}

TEST_F(ConfigCommand, ExplainPrintsOneTableAndWhatIsAskedFor) {
    write("config.env", "export OPTIMIZER=optimi-lion\nexport LEARNING_RATE=1e-5\nexport MIXED_PRECISION=bf16\n");
    const Outcome outcome = strata({"explain", path("config.env")});
    EXPECT_EQ(outcome.status, 0) << outcome.out;
    for (const char* says : {"key", "value", "from", "effect", "  2:22 ", "schedule.lr",
                             "asks for: Trainer<Model, Optimizer<Lion>, Precision<Bf16>>"})
        EXPECT_NE(outcome.out.find(says), std::string::npos) << says << "\n" << outcome.out;
}

TEST_F(ConfigCommand, ExplainKeepsWithinTheWidthOfATerminal) {
    write("config.json", R"({"report_to": "wandb", "output_dir": "/a/folder/whose/name/is/longer/than/a/column/is",
        "read_batch_size": 4, "not_a_key_of_anybody": 1})");
    const Outcome outcome = strata({"explain", path("config.json")});
    std::istringstream lines{outcome.out.substr(outcome.out.find('\n') + 1)};
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
    EXPECT_EQ(outcome.out.find("/name/is/longer"), std::string::npos) << "a value is cut";
    EXPECT_NE(outcome.out.find("\n      ! "), std::string::npos) << "an effect stands below\n" << outcome.out;
}

TEST_F(ConfigCommand, CheckKeepsWithinTheTerminalAndIsALineAFindingInAPipe) {
    write("config.json", R"({"report_to": "wandb", "learing_rate": 1e-4, "read_batch_size": 4})");
    const std::string file = path("config.json");
    const Outcome narrow = Running{{"/usr/bin/env", "COLUMNS=60", STRATA_TOOL, "config", "check", file}, folder}.wait();
    std::istringstream lines{narrow.out.substr(narrow.out.find('\n') + 1)};
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line); ++number)
        EXPECT_TRUE(line.size() <= 60 || line.find(' ', 12) == std::string::npos) << "a word is not cut: " << line;
    EXPECT_GT(number, 4U) << narrow.out;
    const Outcome wide = strata({"check", file});
    EXPECT_EQ(std::count(wide.out.begin(), wide.out.end(), '\n'), 1 + 3) << wide.out;
}

TEST_F(ConfigCommand, AScriptThatLaunchesIsReadWithTheFilesThatItNames) {
    write("run.sh", "#!/bin/bash\nexport N=2\ndeepspeed --num_gpus $N --hostfile hosts train.py --deepspeed ds.json\n");
    write("hosts", "a slots=2\nb slots=4\n");
    write("ds.json", R"({"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 2})");
    const Outcome outcome = strata({"explain", path("run.sh")});
    EXPECT_EQ(outcome.status, 0) << outcome.out;
    for (const char* says : {"ranks and what they start", "--num_gpus", "runs on: 4 ranks, 2 machines",
                             "asks for: Trainer<Model, ZeroStage<2>>"})
        EXPECT_NE(outcome.out.find(says), std::string::npos) << says << "\n" << outcome.out;
    const Outcome converted = strata({"convert", path("run.sh"), "--to", "deepspeed"});
    EXPECT_EQ(converted.status, 0) << converted.err;
    for (const char* says : {"not in deepspeed: ranks: 4", "not in deepspeed: machines: 2", "hostfile: hosts"})
        EXPECT_NE(converted.err.find(says), std::string::npos) << says << "\n" << converted.err;
    const Outcome own = strata({"convert", path("run.sh"), "--to", "trainer"});
    EXPECT_EQ(json::parse(own.out)["num_processes"], 4);
    EXPECT_EQ(own.err.find("ranks: "), std::string::npos) << own.err;
}

TEST_F(ConfigCommand, AFolderIsReadWithTheDatasetListThatItNames) {
    write("config.json", R"({"data_backend_config": "config/multidatabackend.json", "instance_prompt": "a cat"})");
    write("multidatabackend.json",
          R"([{"id": "a", "type": "local", "instance_data_dir": "x", "cache_dir_vae": "v", "repets": 1,
                                       "aws_secret_access_key": "not to be seen"},
                                      {"id": "t", "type": "local", "dataset_type": "text_embeds", "cache_dir": "c"}])");
    const Outcome outcome = strata({"check", folder.string(), "--json"});
    EXPECT_EQ(outcome.status, 1);
    const json all = json::parse(outcome.out);
    ASSERT_EQ(all["files"].size(), 2U) << outcome.out;
    EXPECT_EQ(all["files"][0]["format"], "trainer");
    EXPECT_EQ(all["files"][1]["format"], "datasets");
    EXPECT_EQ(all["problems"], 1);
    bool found = false;
    for (const json& one : all["files"][1]["findings"])
        if (one["effect"] == "refused" && one["pointer"] == "/0/repets") {
            found = true;
            EXPECT_EQ(one["fix"], "did you mean 'repeats'");
            EXPECT_EQ(one["code"], "ST2102");
        }
    EXPECT_TRUE(found) << outcome.out;
    EXPECT_EQ(outcome.out.find("not to be seen"), std::string::npos);
}

TEST_F(ConfigCommand, ConvertedThereAndBackSaysTheSame) {
    write("ds.json",
          R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true},
        "optimizer": {"type": "Lion", "params": {"lr": 3e-5, "betas": [0.9, 0.95]}}, "gradient_clipping": 0.5, "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 4})");
    const Outcome there = strata({"convert", path("ds.json"), "--to", "trainer", "--output", path("config.json")});
    ASSERT_EQ(there.status, 0) << there.err;
    const json config = json::parse(text_of(folder / "config.json"));
    EXPECT_EQ(config["optimizer"], "lion");
    EXPECT_EQ(config["learning_rate"], 3e-5);
    EXPECT_EQ(config["deepspeed_config"]["zero_optimization"]["stage"], 2);
    const Outcome back = strata({"convert", path("config.json"), "--to", "deepspeed"});
    ASSERT_EQ(back.status, 0) << back.err;
    const json again = json::parse(back.out);
    EXPECT_EQ(again["zero_optimization"]["stage"], 2);
    EXPECT_EQ(again["zero_optimization"]["offload_optimizer"]["device"], "cpu");
    EXPECT_EQ(again["optimizer"]["type"], "Lion");
    EXPECT_EQ(again["gradient_clipping"], 0.5);
    EXPECT_EQ(again["bf16"]["enabled"], true);
    EXPECT_EQ(strata({"convert", path("ds.json"), "--to", "accelerate"}).status, 0);
}

TEST_F(ConfigCommand, ConvertSaysWhatTheOtherFormatHasNoWordsFor) {
    write("config.json", R"({"output_dir": "o", "--seed": 3, "learning_rate": 1e-4, "gradient_checkpointing": true,
        "loss_scale_initial": 1000, "report_to": "wandb"})");
    const Outcome other = strata({"convert", path("config.json"), "--to", "deepspeed"});
    EXPECT_EQ(other.status, 0) << other.err;
    for (const char* says : {"warning: not in deepspeed: Recompute<Blocks>\n",
                             "warning: not in deepspeed: engine.loss_scale.initial = 1000",
                             "config.json:2:", "/report_to: metrics go to metrics.jsonl"})
        EXPECT_NE(other.err.find(says), std::string::npos) << says << "\n" << other.err;
    const Outcome same = strata({"convert", path("config.json"), "--to", "trainer"});
    EXPECT_EQ(same.err.find("not in"), std::string::npos) << same.err;
    EXPECT_EQ(json::parse(same.out), json::parse(R"({"output_dir": "o", "seed": 3, "learning_rate": 1e-4,
        "gradient_checkpointing": true, "loss_scale_initial": 1000, "report_to": "wandb"})"));
}

TEST_F(ConfigCommand, ConvertTakesOneFileThatIsWholeAndHasAnotherFormat) {
    write("a.yaml", "{distributed_type: DEEPSPEED, deepspeed_config: {deepspeed_config_file: nothing.json}}");
    write("list.json", R"([{"id": "a", "type": "local", "instance_data_dir": "x", "cache_dir_vae": "v"},
        {"id": "t", "type": "local", "dataset_type": "text_embeds", "cache_dir": "c"}])");
    struct Case {
        std::string file;
        const char* says;
    };
    for (const Case& one : {Case{path("a.yaml"), "which is not there"}, Case{folder.string(), "name one file of it"},
                            Case{path("list.json"), "which has no other format"}}) {
        const Outcome outcome = strata({"convert", one.file, "--to", "deepspeed"});
        EXPECT_EQ(outcome.status, 1) << one.says;
        EXPECT_NE(outcome.err.find(one.says), std::string::npos) << outcome.err;
        EXPECT_EQ(outcome.out, "");
    }
}

TEST_F(ConfigCommand, CodegenNamesTheFilesThatItsHeaderIsMadeOfAndWarnsAsCompilersDo) {
    write("ds.json", R"({"zero_optimization": {"stage": 2, "bf16": 1}})");
    write("a.yaml", "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds.json}\n");
    const Outcome outcome =
        Running{{STRATA_TOOL, "codegen", path("a.yaml"), "--output", path("a.hpp"), "--depfile", path("a.hpp.d")},
                folder}
            .wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(text_of(folder / "a.hpp.d"), path("a.hpp") + ": " + path("a.yaml") + " " + path("ds.json") + "\n");
    EXPECT_NE(outcome.err.find("ds.json:1:44: warning: /zero_optimization/bf16: a key of the top level"),
              std::string::npos)
        << outcome.err;
}

TEST_F(ConfigCommand, SchemasAreJsonAndKnowTheKeys) {
    for (const char* format : {"deepspeed", "accelerate", "simpletuner", "trainer", "datasets"}) {
        const Outcome outcome = strata({"schema", format});
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_EQ(json::parse(outcome.out)["$schema"], "https://json-schema.org/draft/2020-12/schema") << format;
    }
    const json schema = json::parse(strata({"schema", "simpletuner"}).out);
    const json& size = schema["properties"]["train_batch_size"]["anyOf"][0];  // then: as text, or null
    EXPECT_EQ(size["type"], "integer");
    EXPECT_EQ(size["maximum"], 65536);
    EXPECT_TRUE(schema["properties"].contains("lora_rank"));
}

TEST_F(ConfigCommand, WordsThatAreNotUnderstoodEndWithTwoAndSayWhatToType) {
    struct Case {
        std::vector<std::string> words;
        const char* says;
    };
    const std::vector<Case> cases{{{}, "strata config check FILE"},
                                  {{"chek"}, "did you mean 'check'"},
                                  {{"check"}, "needs a FILE"},
                                  {{"check", "x.json", "--jsn"}, "did you mean '--json'"},
                                  {{"schema", "deepsped"}, "did you mean 'deepspeed'"},
                                  {{"convert", "x.json"}, "--to"},
                                  {{"reference", "datasets"}, "docs/dataset-keys.md"},
                                  {{"schema", "launch"}, "explain SCRIPT"}};
    for (const Case& one : cases) {
        const Outcome outcome = strata(one.words);
        EXPECT_EQ(outcome.status, 2) << one.says;
        EXPECT_NE(outcome.err.find(one.says), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(strata({"--help"}).status, 0);
    const Outcome nothing = strata({"check", path("nothing.json")});
    EXPECT_EQ(nothing.status, 1) << "a file that is not there is a problem of the file";
    EXPECT_NE(nothing.out.find("nothing.json: cannot be read\n"), std::string::npos) << nothing.out;
}

TEST_F(ConfigCommand, ThePagesOfTheFormatsAreWhatTheTablesSay) {
    for (const char* format : {"deepspeed", "accelerate", "simpletuner"}) {
        const Outcome outcome = strata({"reference", format});
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        const std::string page = text_of(fs::path{STRATA_SOURCE_DIR} / "docs/config" / (std::string{format} + ".md"));
        EXPECT_TRUE(page.ends_with("-->\n\n" + outcome.out))
            << "docs/config/" << format << ".md is not current: run cmake/update-reference.sh";
    }
}

}  // namespace
