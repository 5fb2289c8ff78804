// Caches that were damaged, are of an earlier version, or were left by a killed run: what is trained on stays the same.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/safetensors.hpp>

#include "../../support/picture_source.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::data;
using strata::models::FluxBatch;
using namespace strata::datasets;
using Fixture = strata_test::PictureSource;
using Source = Fixture::Source;
using strata_test::plain_png;
using strata_test::thrown_by;
using strata_test::write_file;

/// What a run trains on, number by number.
std::vector<float> numbers_of(Source& source, int batches) {
    std::vector<float> all;
    for (int i = 0; i < batches; ++i) {
        const FluxBatch batch = source.next();
        for (const at::Tensor& tensor : {batch.latents_BCHW, batch.text_BTE, batch.pooled_BE}) {
            const auto* const data = static_cast<const float*>(tensor.data_ptr());
            all.insert(all.end(), data, data + tensor.numel());
        }
    }
    return all;
}

/// Flips a bit of a file: where in it, counted in 256ths.
void damage(const std::filesystem::path& path, std::size_t where) {
    auto bytes = strata::storage::read_file(path);
    bytes[bytes.size() * where / 256] ^= std::byte{1};
    write_file(path, bytes);
}

/// The same tensors without their check sum, as an earlier version wrote them.
void make_old(const std::filesystem::path& path) {
    const auto bytes = strata::storage::read_file(path);
    const auto header = strata::storage::parse_safetensors(bytes);
    std::vector<strata::storage::TensorBytes> tensors;
    for (const auto& entry : header.tensors)
        tensors.push_back(
            {entry.name, entry.dtype, entry.shape, strata::storage::tensor_bytes(bytes, header, entry.name)});
    write_file(path, strata::storage::encode_safetensors(tensors, {{"identity", header.metadata.at("identity")}}));
}

TEST(CacheDamage, DamagedAndOldEntriesNeverReachABatch) {
    Fixture fixture;
    fixture.options.threads = 1;
    const std::vector<float> undamaged = numbers_of(*fixture.open(), 27);
    for (const std::int64_t memory : {std::int64_t{64} << 20, std::int64_t{0}})
        for (const bool while_training : {false, true}) {
            fixture.options.cache_memory_bytes = memory;
            if (while_training && memory > 0) continue;  // then nothing is read again
            const auto latents = fixture.latent_files();
            std::vector<std::filesystem::path> texts;
            for (const auto& entry : std::filesystem::recursive_directory_iterator{fixture.folder.path() / "text"})
                if (entry.is_regular_file()) texts.push_back(entry.path());
            std::unique_ptr<Source> source;
            if (while_training) source = fixture.open();
            for (std::size_t i = 0; i < 12; ++i) damage(latents[i], i * 255 / 11);  // length, header and numbers
            for (std::size_t i = 12; i < 15; ++i) make_old(latents[i]);
            for (std::size_t i = 0; i < 5; ++i) damage(texts[i], 200);
            make_old(texts[5]);
            if (!while_training) source = fixture.open();
            EXPECT_EQ(numbers_of(*source, 27), undamaged) << memory << while_training;
            const Report report = source->report();
            EXPECT_EQ(report.latents.rebuilt.size(), 12U) << memory << while_training;
            EXPECT_EQ(report.latents.replaced.size(), 3U);
            EXPECT_EQ(report.texts.rebuilt.size(), 5U);
            EXPECT_EQ(report.texts.replaced.size(), 1U);
            const auto said = [](const std::vector<std::string>& lines, const std::string& what) {
                return std::ranges::count_if(
                    lines, [&](const std::string& line) { return line.find(what) != std::string::npos; });
            };
            strata::comm::SelfComm comm;
            const auto closing = source->closing_lines(comm);
            EXPECT_EQ(said(report.lines(), "latents: 12 damaged entries made again: "), 1);
            EXPECT_EQ(
                said(report.lines(), "latents: 3 entries of an earlier version, without check sums, made again: "), 1);
            EXPECT_EQ(said(report.lines(), "captions: 1 entry of an earlier version, without check sum, made again: " +
                                               texts[5].string()),
                      1);
            EXPECT_EQ(said(report.lines(), " and 9 more"), 1);
            if (while_training) {
                EXPECT_EQ(closing.size(), 4U);
                EXPECT_EQ(said(closing, "latents, while training: 12 damaged entries made again: "), 1);
            }
            fixture.options.cache_memory_bytes = std::int64_t{64} << 20;
            EXPECT_TRUE(fixture.open()->report().latents.rebuilt.empty()) << "once is enough";
        }
}

TEST(CacheDamage, TemporaryFilesOfKilledRunsLeaveTheCaches) {
    const Fixture fixture;
    (void)fixture.open();
    const auto cache = fixture.folder.path() / "vae";
    const auto text = fixture.folder.path() / "text";
    for (const auto& file : {cache / "ab" / ".x.safetensors.12345.tmp",
                             text / "cd" / (".y." + strata::storage::kernel_digits() + "-12345.tmp"),
                             cache / "ab" / ".of_another_machine.0badcafe-12345.tmp"}) {
        write_file(file.string() + ".x", "half");
        std::filesystem::rename(file.string() + ".x", file);
    }
    std::filesystem::last_write_time(cache / "ab" / ".x.safetensors.12345.tmp",
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours{2});
    strata::storage::AtomicFile living{cache / "ab" / "living"};
    const auto lines = fixture.open()->report().lines();
    EXPECT_EQ(std::ranges::count(lines, "  removed 2 temporary files that killed runs left in the caches"), 1);
    living.publish();
    EXPECT_TRUE(std::filesystem::exists(cache / "ab" / ".of_another_machine.0badcafe-12345.tmp"));
    std::filesystem::remove_all(cache / "ab");
}

TEST(CacheDamage, AnEntryThatCannotBeMadeAgainIsNamedWithItsPicture) {
    Fixture fixture;
    fixture.options.cache_memory_bytes = 0;
    const auto source = fixture.open();
    for (const auto& file : fixture.latent_files()) damage(file, 200);
    std::filesystem::remove_all(fixture.data());
    const auto error = thrown_by([&] { (void)source->next(); });
    EXPECT_TRUE(error.says("cache entry '" + (fixture.folder.path() / "vae").string())) << error.message;
    EXPECT_TRUE(error.says("is damaged and cannot be made again: ") && error.says(fixture.data().string() + "/p"))
        << error.message;
}

TEST(CacheDamage, WhatWasSkippedTakesALineAReasonAndAFile) {
    const Fixture fixture;
    constexpr int many = 40;
    for (int i = 0; i < many; ++i)
        write_file(fixture.data() / ("bare" + std::to_string(i) + ".png"), plain_png(64, 64, 0, 0, 0));
    for (int i = 0; i < 7; ++i) {
        const std::string stem = "cut\n" + std::to_string(i);
        auto cut = plain_png(64, 64, 9, 9, 9);
        cut.resize(cut.size() / 2);
        write_file(fixture.data() / (stem + ".png"), cut);
        write_file(fixture.data() / (stem + ".txt"), "A picture with half of its bytes");
    }
    const Report report = fixture.open()->report();
    const auto list = fixture.folder.path() / "out" / "skipped.txt";
    std::vector<std::string> lines = report.lines(report.write_skipped(list));
    lines.resize(4);
    EXPECT_EQ(lines[0], "83 pictures found, 36 used, 47 skipped");
    EXPECT_EQ(lines[1], "  40 skipped, no caption: " + (fixture.data() / "bare0.png").string() + " and 39 more");
    EXPECT_TRUE(lines[2].starts_with("  7 skipped, unreadable: ") && lines[2].ends_with(" and 2 more")) << lines[2];
    EXPECT_EQ(lines[3], "  what was skipped is listed in " + list.string());
    const auto bytes = strata::storage::read_file(list);
    const std::string text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    EXPECT_EQ(std::ranges::count(text, '\n'), 47);
    for (int i = 0; i < many; ++i)
        EXPECT_NE(text.find("no caption\tpictures\t" +
                            (fixture.data() / ("bare" + std::to_string(i) + ".png")).string() + "\t\n"),
                  std::string::npos);
    EXPECT_NE(text.find("unreadable\tpictures\t" + fixture.data().string() + "/cut\\n6.png\t"), std::string::npos)
        << text;
    EXPECT_TRUE(Report{}.write_skipped(list).empty());
    EXPECT_FALSE(std::filesystem::exists(list));
}

}  // namespace
