#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/weights/weight_files.hpp>

#include "../../support/made_weights.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using strata::Errc;
using strata::weights::WeightFiles;
using strata_test::TemporaryFolder;
using strata_test::write_index;
using strata_test::write_weights;

/// What opening throws.
strata::Error refusal(const std::filesystem::path& path) {
    try {
        (void)WeightFiles{path};
    } catch (const strata::Error& error) {
        return error;
    }
    return {Errc{}, "nothing was thrown", ""};
}
bool says(const strata::Error& error, const std::string& words) {
    return std::string{error.what()}.find(words) != std::string::npos;
}

TEST(WeightFiles, OneFileIsReadByName) {
    const TemporaryFolder folder;
    write_weights(folder.path() / "some.safetensors", {{"a", {2, 3}}, {"b", {1}}});
    const WeightFiles files{folder.path() / "some.safetensors"};
    ASSERT_NE(files.find("a"), nullptr);
    EXPECT_EQ(files.find("c"), nullptr);
    EXPECT_EQ(files.find("a")->entry->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(files.find("a")->bytes(), 24U);
    std::array<float, 2> values{};
    WeightFiles::read(*files.find("a"), std::as_writable_bytes(std::span{values}), 16);
    EXPECT_EQ(values, (std::array<float, 2>{4, 5}));
    EXPECT_EQ(files.metadata().at("format"), "pt");
}

TEST(WeightFiles, ShardsAreOneSetOfTensors) {
    const TemporaryFolder folder;
    write_weights(folder.path() / "model-00001-of-00002.safetensors", {{"a", {2}}});
    write_weights(folder.path() / "model-00002-of-00002.safetensors", {{"b", {2}}}, 10);
    write_index(folder.path() / "model.safetensors.index.json",
                {{"a", "model-00001-of-00002.safetensors"}, {"b", "model-00002-of-00002.safetensors"}});
    for (const auto& path : {folder.path(), folder.path() / "model.safetensors.index.json"}) {
        const WeightFiles files{path};
        EXPECT_EQ(files.tensors().size(), 2U);
        EXPECT_EQ(files.files().size(), 2U);
        std::array<float, 2> values{};
        WeightFiles::read(*files.find("b"), std::as_writable_bytes(std::span{values}));
        EXPECT_EQ(values, (std::array<float, 2>{10, 11}));
    }
}

TEST(WeightFiles, FilesStayOpenWithTheLastCopy) {
    const TemporaryFolder folder;
    const auto open = [&] {
        write_weights(folder.path() / "model.safetensors", {{"a", {2}}}, 7);
        const WeightFiles files{folder.path()};
        return std::pair{files, files.digest()};
    };
    const auto [files, digest] = open();
    std::filesystem::remove(folder.path() / "model.safetensors");
    std::array<float, 2> values{};
    WeightFiles::read(*files.find("a"), std::as_writable_bytes(std::span{values}));
    EXPECT_EQ(values, (std::array<float, 2>{7, 8}));
    EXPECT_EQ(files.digest(), digest);
}

TEST(WeightFiles, TheDigestTellsOtherHeadersApart) {
    const TemporaryFolder folder;
    write_weights(folder.path() / "one.safetensors", {{"a", {2, 3}}});
    write_weights(folder.path() / "same.safetensors", {{"a", {2, 3}}}, 5);
    write_weights(folder.path() / "shape.safetensors", {{"a", {3, 2}}});
    write_weights(folder.path() / "name.safetensors", {{"b", {2, 3}}});
    const auto digest = [&](const char* name) { return WeightFiles{folder.path() / name}.digest(); };
    EXPECT_EQ(digest("one.safetensors"), digest("same.safetensors"));
    EXPECT_NE(digest("one.safetensors"), digest("shape.safetensors"));
    EXPECT_NE(digest("one.safetensors"), digest("name.safetensors"));
    EXPECT_EQ(digest("one.safetensors").size(), 16U);
}

TEST(WeightFiles, TheUsualNamesOfAFolderComeInOneOrder) {
    const TemporaryFolder folder;
    write_weights(folder.path() / "model.fp16.safetensors", {{"half", {1}}});
    write_weights(folder.path() / "another.safetensors", {{"another", {1}}});
    EXPECT_NE(WeightFiles{folder.path()}.find("half"), nullptr);
    write_weights(folder.path() / "model.safetensors", {{"whole", {1}}});
    EXPECT_NE(WeightFiles{folder.path()}.find("whole"), nullptr);
    write_weights(folder.path() / "diffusion_pytorch_model.safetensors", {{"denoiser", {1}}});
    EXPECT_NE(WeightFiles{folder.path()}.find("denoiser"), nullptr);
}

TEST(WeightFiles, TheOnlyFileOfAFolderMayHaveAnyName) {
    const TemporaryFolder folder;
    write_weights(folder.path() / "my_model.safetensors", {{"a", {1}}});
    EXPECT_NE(WeightFiles{folder.path()}.find("a"), nullptr);
    write_weights(folder.path() / "other.safetensors", {{"a", {1}}});
    const strata::Error error = refusal(folder.path());
    EXPECT_EQ(error.code(), Errc::bad_weight_files);
    EXPECT_TRUE(says(error, "my_model.safetensors, other.safetensors")) << error.what();
}

TEST(WeightFiles, AFolderOfModelsSaysWhichItHas) {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.path() / "vae");
    std::filesystem::create_directories(folder.path() / "tokenizer");
    std::filesystem::create_directories(folder.path() / "transformer");
    write_weights(folder.path() / "vae" / "diffusion_pytorch_model.safetensors", {{"a", {1}}});
    write_weights(folder.path() / "transformer" / "diffusion_pytorch_model.safetensors", {{"a", {1}}});
    const strata::Error error = refusal(folder.path());
    EXPECT_EQ(error.code(), Errc::bad_weight_files);
    EXPECT_TRUE(says(error, "the folder of one model: transformer, vae")) << error.what();
}

TEST(WeightFiles, AllMissingShardsAreNamedAtOnce) {
    const TemporaryFolder folder;
    write_weights(folder.path() / "s1.safetensors", {{"a", {2}}});
    write_index(folder.path() / "model.safetensors.index.json",
                {{"a", "s1.safetensors"}, {"b", "s2.safetensors"}, {"c", "s3.safetensors"}, {"d", "s3.safetensors"}});
    const strata::Error error = refusal(folder.path());
    EXPECT_EQ(error.code(), Errc::bad_weight_files);
    EXPECT_TRUE(says(error, "'s2.safetensors' with 1 tensors is missing; the shard 's3.safetensors' with 2"))
        << error.what();
}

TEST(WeightFiles, AnIndexAndItsShardsAgree) {
    const TemporaryFolder folder;
    write_weights(folder.path() / "s1.safetensors", {{"a", {2}}, {"b", {2}}, {"twice", {1}}});
    write_weights(folder.path() / "s2.safetensors", {{"c", {2}}, {"twice", {1}}});
    write_index(folder.path() / "model.safetensors.index.json", {{"a", "s1.safetensors"},
                                                                 {"b", "s2.safetensors"},
                                                                 {"c", "s2.safetensors"},
                                                                 {"twice", "s1.safetensors"},
                                                                 {"nowhere", "s2.safetensors"}});
    const strata::Error error = refusal(folder.path());
    EXPECT_EQ(error.code(), Errc::bad_weight_files);
    EXPECT_TRUE(says(error, "'b' is in 's1.safetensors' and not in 's2.safetensors'")) << error.what();
    EXPECT_TRUE(says(error, "'twice' is in 's1.safetensors' and in 's2.safetensors'")) << error.what();
    EXPECT_TRUE(says(error, "'nowhere' is not in 's2.safetensors'")) << error.what();
}

TEST(WeightFiles, AnIndexThatIsNoneIsRefused) {
    const TemporaryFolder folder;
    const auto index = folder.path() / "model.safetensors.index.json";
    for (const char* const text : {"", "{", "[]", "{}", R"({"weight_map": 3})", R"({"weight_map": {}})",
                                   R"({"weight_map": {"a": 3}})", R"({"weight_map": {"a": "../a.safetensors"}})",
                                   R"({"weight_map": {"a": "/etc/passwd"}})", R"({"weight_map": {"a": ".."}})"}) {
        strata::storage::write_file(index, std::string{text});
        EXPECT_EQ(refusal(index).code(), Errc::bad_weight_files) << text;
    }
}

TEST(WeightFiles, WhatIsNotThereOrDamagedIsSaid) {
    const TemporaryFolder folder;
    EXPECT_EQ(refusal(folder.path() / "none.safetensors").code(), Errc::not_found);
    EXPECT_EQ(refusal(folder.path()).code(), Errc::bad_weight_files);
    strata::storage::write_file(folder.path() / "model.safetensors", std::string{"no tensors"});
    EXPECT_EQ(refusal(folder.path()).code(), Errc::corrupt_safetensors);
}

}  // namespace
