#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/train/leftovers.hpp>

#include "../../support/made_weights.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using strata::train::ExportOptions;
using strata::train::remove_leftovers;

struct Leftovers : testing::Test {
    strata_test::TemporaryFolder place;
    fs::path run = place.path() / "run", elsewhere = place.path() / "elsewhere";
    fs::path model = run / "model.safetensors";

    void SetUp() override {
        for (const auto& folder : {run / "checkpoints" / "step_1", run / "ema", elsewhere})
            fs::create_directories(folder);
    }
    static void write_exported(const fs::path& file) {
        strata::storage::write_safetensors(file, {}, {{"strata.export", "step 1, loss 1, as_computed, 5GB"}});
    }
    /// Files and links of the run.
    [[nodiscard]] std::set<std::string> left() const {
        std::set<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator{run})
            if (!entry.is_directory() || entry.is_symlink())
                names.insert(entry.path().lexically_relative(run).string());
        return names;
    }
    void expect_refused(const fs::path& base, const ExportOptions& options = {}) const {
        const auto before = left();
        try {
            remove_leftovers(run, options, {base});
            ADD_FAILURE() << base << " was not refused";
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), strata::Errc::bad_reference);
            EXPECT_NE(std::string{error.what()}.find("'" + base.string() + "'"), std::string::npos) << error.what();
            EXPECT_NE(std::string{error.what()}.find("move them out of that folder"), std::string::npos);
        }
        EXPECT_EQ(left(), before) << "something went before the refusal";
    }
};

TEST_F(Leftovers, WhatRunsLeaveGoesUnderAllOfTheirNamesAndNothingElse) {
    ExportOptions options;
    options.path = run / "shards" / "net.safetensors";
    fs::create_directories(run / "shards");
    for (const char* name : {"model.safetensors", "model_ema.safetensors", "pytorch_lora_weights.safetensors",
                             "ema/pytorch_lora_weights.safetensors", "shards/net-00001-of-00002.safetensors",
                             "shards/net-00002-of-00002.safetensors", "shards/net_ema.safetensors", "kept.safetensors"})
        write_exported(run / name);
    strata_test::write_index(run / "shards/net.safetensors.index.json",
                             {{"a", "net-00001-of-00002.safetensors"}, {"b", "net-00002-of-00002.safetensors"}});
    EXPECT_TRUE(remove_leftovers(run, options, {}).empty());
    EXPECT_EQ(left(), std::set<std::string>{"kept.safetensors"});
    EXPECT_FALSE(fs::exists(run / "ema"));
}

TEST_F(Leftovers, WeightsThatNoRunLeftStayAndAreTold) {
    strata_test::write_weights(model, {{"a", {2}}});
    EXPECT_EQ(remove_leftovers(run, {}, {}), std::vector<fs::path>{model});
    EXPECT_EQ(left(), std::set<std::string>{"model.safetensors"});
}

TEST_F(Leftovers, WhereNoRunHasBeenNothingGoes) {
    fs::remove_all(run / "checkpoints");
    write_exported(model);
    EXPECT_EQ(remove_leftovers(run, {}, {}), std::vector<fs::path>{model});
    EXPECT_TRUE(fs::exists(model));
}

TEST_F(Leftovers, LinksOutOfTheFolderAreNotFollowed) {
    fs::remove(run / "ema");
    write_exported(elsewhere / "pytorch_lora_weights.safetensors");
    write_exported(elsewhere / "net.safetensors");
    fs::create_directory_symlink(elsewhere, run / "ema");
    fs::create_symlink(elsewhere / "net.safetensors", model);
    ExportOptions options;
    options.path = run / "ema" / "net.safetensors";
    EXPECT_EQ(remove_leftovers(run, options, {}).size(), 3U);
    EXPECT_EQ(left(), (std::set<std::string>{"ema", "model.safetensors"}));
    EXPECT_TRUE(fs::exists(elsewhere / "pytorch_lora_weights.safetensors"));
    EXPECT_TRUE(fs::exists(elsewhere / "net.safetensors"));
}

TEST_F(Leftovers, AFolderThatIsALinkItselfIsCleared) {
    write_exported(model);
    fs::create_directory_symlink(run, place.path() / "link");
    EXPECT_TRUE(remove_leftovers(place.path() / "link", {}, {}).empty());
    EXPECT_FALSE(fs::exists(model));
}

TEST_F(Leftovers, WhatTheRunBeginsWithIsRefusedAsAFileAFolderAndThroughLinks) {
    write_exported(model);
    write_exported(run / "model_ema.safetensors");
    write_exported(run / "ema" / "pytorch_lora_weights.safetensors");
    write_exported(run / "checkpoints" / "step_1" / "model.safetensors");
    fs::create_symlink(model, elsewhere / "model.safetensors");
    fs::create_directory_symlink(run, place.path() / "link");
    for (const fs::path& base :
         {model, run, run / "model_ema.safetensors", run / "ema" / "pytorch_lora_weights.safetensors",
          run / "checkpoints" / "step_1", run / "checkpoints" / "step_1" / "model.safetensors",
          run / ".." / "run" / "model.safetensors", elsewhere, elsewhere / "model.safetensors", place.path() / "link",
          place.path() / "link" / "model.safetensors"})
        expect_refused(base);
}

TEST_F(Leftovers, ShardsThatTheRunBeginsWithAreRefusedByTheirIndex) {
    const auto write = [&](const char* name, const char* tensor) {
        const float values[1]{};
        strata::storage::write_safetensors(
            run / name,
            std::vector<strata::storage::TensorBytes>{
                {tensor, strata::storage::Dtype::f32, {1}, std::as_bytes(std::span{values})}},
            {{"strata.export", "step 1"}});
    };
    write("model-00001-of-00002.safetensors", "a");
    write("model-00002-of-00002.safetensors", "b");
    const fs::path index = run / "model.safetensors.index.json";
    strata_test::write_index(index,
                             {{"a", "model-00001-of-00002.safetensors"}, {"b", "model-00002-of-00002.safetensors"}});
    expect_refused(index);
    expect_refused(run / "model-00002-of-00002.safetensors");
    // An index elsewhere, whose shards are links into the run.
    fs::copy_file(index, elsewhere / "base.safetensors.index.json");
    for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
        fs::create_symlink(run / name, elsewhere / name);
    expect_refused(elsewhere / "base.safetensors.index.json");
    EXPECT_TRUE(remove_leftovers(run, {}, {}).empty());
    EXPECT_TRUE(left().empty());
}

TEST_F(Leftovers, WeightsThatAreNoLeftoverAndWouldBeWrittenOverAreRefusedToo) {
    strata_test::write_weights(model, {{"a", {2}}});
    expect_refused(model);
    ExportOptions options;
    options.path = run / "net.safetensors";
    strata_test::write_weights(options.path, {{"a", {2}}});
    expect_refused(options.path, options);
}

TEST_F(Leftovers, BasesOutsideOfTheFolderAndBesideTheNamesOfRunsAreFine) {
    write_exported(model);
    write_exported(elsewhere / "model.safetensors");
    fs::create_directories(run / "base");
    strata_test::write_weights(run / "base" / "model.safetensors", {{"a", {2}}});
    EXPECT_TRUE(remove_leftovers(
                    run, {},
                    {{}, elsewhere, elsewhere / "model.safetensors", run / "base", place.path(), place.path() / "none"})
                    .empty());
    EXPECT_EQ(left(), (std::set<std::string>{"base/model.safetensors"}));
}

}  // namespace
