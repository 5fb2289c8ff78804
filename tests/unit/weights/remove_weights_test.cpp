#include <filesystem>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/weights/remove_weights.hpp>
#include <strata/weights/weight_files.hpp>

#include "../../support/made_weights.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using strata::storage::SafetensorsMetadata;
using strata::weights::remove_weights;
using strata_test::TemporaryFolder;
using strata_test::write_index;
using strata_test::write_weights;

constexpr const char* first = "model-00001-of-00002.safetensors";
constexpr const char* second = "model-00002-of-00002.safetensors";

constexpr auto any = [](const SafetensorsMetadata&) { return true; };
constexpr auto ours = [](const SafetensorsMetadata& metadata) { return metadata.contains("made.by"); };

void write_ours(const fs::path& file) { strata::storage::write_safetensors(file, {}, {{"made.by", "this test"}}); }

struct RemoveWeights : testing::Test {
    TemporaryFolder folder;
    fs::path model = folder.path() / "model.safetensors";

    void write_shards() const {
        write_weights(folder.path() / first, {{"a", {2}}});
        write_weights(folder.path() / second, {{"b", {2}}});
        write_index(folder.path() / "model.safetensors.index.json", {{"a", first}, {"b", second}});
    }
    [[nodiscard]] std::set<std::string> left() const {
        std::set<std::string> names;
        for (const auto& entry : fs::directory_iterator{folder.path()}) names.insert(entry.path().filename().string());
        return names;
    }
};

TEST_F(RemoveWeights, OneFileGoesAndItsNeighboursStay) {
    write_ours(model);
    for (const char* name : {"model_ema.safetensors", "model-1-of-2.safetensors",
                             "model-00001-of-00002.safetensors.old", "amodel-00001-of-00002.safetensors", "notes.txt"})
        write_ours(folder.path() / name);
    EXPECT_TRUE(remove_weights(model, any));
    EXPECT_EQ(left(), (std::set<std::string>{"model_ema.safetensors", "model-1-of-2.safetensors",
                                             "model-00001-of-00002.safetensors.old",
                                             "amodel-00001-of-00002.safetensors", "notes.txt"}));
    EXPECT_FALSE(remove_weights(model, any)) << "there is nothing any more";
}

TEST_F(RemoveWeights, ShardsGoWithTheirIndex) {
    write_shards();
    EXPECT_TRUE(remove_weights(model, any));
    EXPECT_TRUE(left().empty());
}

TEST_F(RemoveWeights, ShardsThatARemovalLeftBehindGoTheNextTime) {
    write_shards();
    fs::remove(folder.path() / "model.safetensors.index.json");  // where one that breaks off begins
    fs::remove(folder.path() / first);
    EXPECT_TRUE(remove_weights(model, any));
    EXPECT_TRUE(left().empty());
}

TEST_F(RemoveWeights, WhatIsNotMeantStays) {
    write_shards();
    write_ours(model);
    EXPECT_TRUE(remove_weights(model, ours));
    EXPECT_EQ(left(), (std::set<std::string>{first, second, "model.safetensors.index.json"}));
    EXPECT_EQ(strata::weights::WeightFiles{folder.path()}.tensors().size(), 2U);
    EXPECT_FALSE(remove_weights(model, ours));
}

TEST_F(RemoveWeights, WhatCannotBeReadStays) {
    strata::storage::write_file(model, "no safetensors at all");
    EXPECT_FALSE(remove_weights(model, any));
    EXPECT_EQ(left(), std::set<std::string>{"model.safetensors"});
    EXPECT_FALSE(remove_weights(folder.path() / "no" / "such" / "model.safetensors", any));
}

TEST_F(RemoveWeights, LinksAndWhatTheyLeadToStay) {
    const TemporaryFolder elsewhere;
    write_ours(elsewhere.path() / "base.safetensors");
    fs::create_symlink(elsewhere.path() / "base.safetensors", model);
    fs::create_symlink(elsewhere.path() / "base.safetensors", folder.path() / first);
    EXPECT_FALSE(remove_weights(model, any));
    EXPECT_EQ(left(), (std::set<std::string>{"model.safetensors", first}));
    EXPECT_TRUE(fs::exists(elsewhere.path() / "base.safetensors"));
}

TEST_F(RemoveWeights, AnIndexThatNamesAForeignShardKeepsAllOfThem) {
    write_ours(folder.path() / first);
    write_weights(folder.path() / second, {{"b", {2}}});
    write_index(folder.path() / "model.safetensors.index.json", {{"a", first}, {"b", second}});
    EXPECT_FALSE(remove_weights(model, ours));
    EXPECT_EQ(left(), (std::set<std::string>{first, second, "model.safetensors.index.json"}));
}

}  // namespace
