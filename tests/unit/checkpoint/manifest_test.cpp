// manifest.json comes back as it was written, or is refused with its path.

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/checkpoint/manifest.hpp>
#include <strata/core/error.hpp>
#include <strata/storage/digest.hpp>

namespace {

using namespace strata::checkpoint;

struct Manifest : testing::Test {
    std::filesystem::path file = std::filesystem::path{testing::TempDir()} / "strata_manifest_test.json";
    void TearDown() override { std::filesystem::remove(file); }
};

strata::checkpoint::Manifest filled() {
    strata::checkpoint::Manifest m;
    m.step = 12;
    m.samples = 34567890123;
    m.seed = 0xffffffffffffffffU;
    m.world = 3;
    m.update_rule = "exp_avg,exp_avg_sq";
    m.parameters = {{"a.weight", {2, 3}, 0}, {"scalar", {}, 6}};
    m.files = {{"state.safetensors", 99, 0xdeadbeefU, {{"weight.0", "weight", 0, 7}}}, {"model.safetensors", 5, 0, {}}};
    m.scalars = {{"loss_scale", 65536.0}, {"other", -1.0}};
    m.plan = {{"ranks", "3"}, {"batch", "8"}};
    m.data = {{"data set 'b'", "5 samples"}, {"data set 'a'", "\"quoted\"\n"}};
    m.environment = {{"libtorch", "2"}};
    return m;
}

TEST_F(Manifest, EveryFieldComesBack) {
    write_manifest(file, filled());
    const auto found = read_manifest(file);
    EXPECT_EQ(found.step, 12);
    EXPECT_EQ(found.samples, 34567890123);
    EXPECT_EQ(found.seed, 0xffffffffffffffffU);
    EXPECT_EQ(found.world, 3);
    EXPECT_EQ(found.update_rule, "exp_avg,exp_avg_sq");
    EXPECT_EQ(found.parameters, filled().parameters);
    ASSERT_EQ(found.files.size(), 2U);
    EXPECT_EQ(found.files[0].crc32, 0xdeadbeefU);
    ASSERT_EQ(found.files[0].pieces.size(), 1U);
    EXPECT_EQ(found.files[0].pieces[0].tensor, "weight.0");
    EXPECT_EQ(found.files[0].pieces[0].numel, 7);
    EXPECT_EQ(found.scalars, filled().scalars);
    EXPECT_EQ(found.plan, filled().plan) << "in their order";
    EXPECT_EQ(found.data, filled().data);
    EXPECT_EQ(found.environment, filled().environment);
    EXPECT_TRUE(found.sealed);
    EXPECT_TRUE(found.began_with.empty() && found.settled.empty());
}

TEST_F(Manifest, SaysWhatWasTrainedWhereThatHasChanged) {
    auto m = filled();
    EXPECT_EQ(began_with(m), (std::vector<std::string>{"a.weight", "scalar"}));
    m.began_with = {"scalar", "b"};
    m.settled = {"b"};
    m.frozen = {{"c", {1}, 0}};
    write_manifest(file, m);
    const auto found = read_manifest(file);
    EXPECT_EQ(began_with(found), (std::vector<std::string>{"scalar", "b"}));
    EXPECT_EQ(found.settled, (std::vector<std::string>{"b"}));
    EXPECT_TRUE(found.frozen.empty()) << "of a trainer, not of a checkpoint";
}

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

TEST_F(Manifest, AnyByteThatIsAnotherBreaksTheSeal) {
    write_manifest(file, filled());
    const std::string whole = text_of(file);
    int noticed = 0;
    for (std::size_t at = 0; at < whole.size(); at += 3) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        std::ofstream{file, std::ios::binary} << changed;
        try {
            (void)read_manifest(file);
            ADD_FAILURE() << "byte " << at << " of " << whole;
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), strata::Errc::corrupt_checkpoint);
            noticed += error.problem().find("its seal does not match") != std::string::npos ? 1 : 0;
        }
    }
    EXPECT_GT(noticed, 50);
    std::ofstream{file, std::ios::binary} << whole << '\n';
    EXPECT_EQ(read_manifest(file).step, 12) << "an editor's line break at the end changes nothing";
}

TEST_F(Manifest, TheSealIsTheSha256OfWhatStandsBeforeItsLine) {
    write_manifest(file, filled());
    const std::string text = text_of(file);
    const std::size_t at = text.find(",\n \"seal\": \"");
    ASSERT_NE(at, std::string::npos) << text;
    const std::string seal =
        strata::storage::to_hex(strata::storage::sha256(std::as_bytes(std::span{text.data(), at})));
    EXPECT_EQ(text.substr(at), ",\n \"seal\": \"" + seal + "\"\n}");
}

TEST_F(Manifest, OneOfTheFormerFormatIsReadAndSaysThatItHasNoSeal) {
    std::ofstream{file} << R"({"format": "strata checkpoint 1", "step": 3, "samples": 24, "seed": 1, "world": 1,
        "update_rule": "exp_avg", "parameters": [], "files": []})";
    const auto found = read_manifest(file);
    EXPECT_EQ(found.step, 3);
    EXPECT_FALSE(found.sealed);
    EXPECT_TRUE(found.plan.empty());
}

TEST_F(Manifest, WithoutScalarsItIsReadAllTheSame) {
    auto plain = filled();
    plain.scalars.clear();
    write_manifest(file, plain);
    EXPECT_TRUE(read_manifest(file).scalars.empty());
}

TEST_F(Manifest, AFileRecordTravelsAsText) {
    const FileRecord record = file_record_from(to_text(filled().files[0]));
    EXPECT_EQ(record.name, "state.safetensors");
    EXPECT_EQ(record.bytes, 99U);
    EXPECT_EQ(record.pieces.size(), 1U);
}

TEST_F(Manifest, WhatIsNoManifestIsRefusedWithItsPath) {
    for (const char* text : {"", "{", "[]", "{\"format\":\"other\"}", "{\"format\":\"strata checkpoint 1\"}",
                             "{\"format\":\"strata checkpoint 1\",\"step\":\"x\"}"}) {
        std::ofstream{file} << text;
        try {
            (void)read_manifest(file);
            FAIL() << "accepted " << text;
        } catch (const strata::Error& error) {
            EXPECT_EQ(error.code(), strata::Errc::corrupt_checkpoint);
            EXPECT_NE(error.problem().find(file.string()), std::string::npos);
        }
    }
}

TEST_F(Manifest, NumbersThatNoSaveWroteAreRefused) {
    const auto refused = [&](const std::function<void(strata::checkpoint::Manifest&)>& spoil) {
        auto manifest = filled();
        spoil(manifest);
        write_manifest(file, manifest);
        EXPECT_THROW((void)read_manifest(file), strata::Error);
    };
    refused([](auto& m) { m.step = -7; });
    refused([](auto& m) { m.samples = -8; });
    refused([](auto& m) { m.world = 0; });
    refused([](auto& m) { m.files[0].name = "../elsewhere"; });
    refused([](auto& m) { m.files[0].pieces[0].begin = -1; });
    refused([](auto& m) { m.files[0].pieces[0].numel = std::int64_t{1} << 62; });
}

TEST_F(Manifest, AMissingFileIsADamagedCheckpoint) {
    try {
        (void)read_manifest(file);
        FAIL();
    } catch (const strata::Error& error) {
        EXPECT_EQ(error.code(), strata::Errc::corrupt_checkpoint);
    }
}

}  // namespace
