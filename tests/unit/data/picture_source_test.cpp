#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/pictures/orientation.hpp>
#include <strata/pictures/resample.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../../support/colour_profiles.hpp"
#include "../../support/fake_encoders.hpp"
#include "../../support/made_files.hpp"
#include "../../support/picture_source.hpp"
#include "../../support/pictures.hpp"
#include "../../support/prepared.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::core;
using namespace strata::data;
using strata::models::FluxBatch;
using namespace strata::datasets;
using namespace strata::pictures;
using strata::Errc;
using strata_test::LengthText;
using strata_test::MeanCodec;
using strata_test::plain_png;
using strata_test::prepared;
using strata_test::thrown_by;
using Fixture = strata_test::PictureSource;
using Source = Fixture::Source;
using strata_test::write_file;

int number_of(const std::string& sample) { return std::stoi(std::filesystem::path{sample}.stem().string().substr(1)); }

TEST(PictureSource, ABatchHasAsManySamplesAsItsDataSetSays) {
    const Fixture fixture;
    auto list = fixture.list();
    list.images[0].train_batch_size = 3;
    strata::comm::SelfComm comm;
    const auto source = prepared<Source>(comm, list, fixture.codec, fixture.text, fixture.options);
    EXPECT_EQ(source->samples_per_micro_batch(), 4) << "what data sets without their own have";
    EXPECT_EQ(source->samples_in(0), 3);
    EXPECT_EQ(source->next().samples.size(), 3U);
}

/// An ICC profile that cannot be used changes no pixel, and is said once a data set: while caching, and at visits where
/// nothing is cached ahead.
TEST(PictureSource, WhatDecodersNoteIsCountedAndNamedOnce) {
    Fixture fixture;
    const std::vector<std::byte> noise(200, std::byte{7});
    for (const int i : {5, 3})
        write_file(fixture.data() / ("p0" + std::to_string(i) + ".png"),
                   strata_test::inserted(strata_test::plain_png(64, 64, static_cast<std::uint8_t>(i), 20, 30),
                                         strata_test::after_png_header, strata_test::profile_chunk(noise)));
    const auto is_note = [](const std::string& line) {
        return line.starts_with("data set 'pictures': p03.png: ") && line.ends_with("; and so with 1 more");
    };
    strata::comm::SelfComm comm;
    auto list = fixture.list();
    for (const bool ahead : {true, false}) {
        list.images[0].vae_cache_disable = !ahead;
        const auto source = prepared<Source>(comm, list, fixture.codec, fixture.text, fixture.options);
        const auto notes = source->report().notes;
        EXPECT_EQ(std::count_if(notes.begin(), notes.end(), is_note), ahead ? 1 : 0);
        for (int b = 0; b < 9; ++b) (void)source->next();
        const auto lines = source->closing_lines(comm);
        EXPECT_EQ(std::count_if(lines.begin(), lines.end(), is_note), ahead ? 0 : 1);
    }
}

TEST(PictureSource, AnEpochShowsEveryPictureWithItsLatentsAndCaption) {
    const Fixture fixture;
    const auto source = fixture.open();
    ASSERT_EQ(source->micro_batches_per_epoch(), 9);
    EXPECT_EQ(source->samples_per_micro_batch(), 4);
    std::map<int, int> seen;
    for (int b = 0; b < 9; ++b) {
        const FluxBatch batch = source->next();
        ASSERT_EQ(batch.latents_BCHW.dim(), 4);
        EXPECT_EQ(batch.latents_BCHW.size(0), 4);
        EXPECT_EQ(batch.latents_BCHW.size(1), 3);
        EXPECT_EQ(batch.text_BTE.sizes(), (std::vector<std::int64_t>{4, 4, 2}));
        EXPECT_EQ(batch.pooled_BE.sizes(), (std::vector<std::int64_t>{4, 2}));
        for (std::int64_t i = 0; i < 4; ++i) {
            const int number = number_of(batch.samples[static_cast<std::size_t>(i)]);
            ++seen[number];
            EXPECT_EQ(batch.captions[static_cast<std::size_t>(i)].size(), static_cast<std::size_t>(number) + 1);
            EXPECT_EQ(batch.pooled_BE[i][0].item<float>(), static_cast<float>(number + 1));
            const float red = static_cast<float>(number * 7 % 256) / 127.5F - 1;
            EXPECT_NEAR(batch.latents_BCHW[i][0][0][0].item<float>(), red, 1e-4F);
            EXPECT_EQ(batch.latents_BCHW.size(3) > batch.latents_BCHW.size(2), number >= 24);
        }
    }
    EXPECT_EQ(seen.size(), 36U);
}

TEST(PictureSource, EveryFormatComesUprightAtTheSizeOfItsBucket) {
    // Upright wide pictures of which the left part is bright; the JPEGs lie on their side, and are decoded at reduced scale.
    const Fixture fixture;
    std::filesystem::remove_all(fixture.data());
    const Picture wide = strata_test::soft_picture(400, 256);
    const auto tall = turn_upright(wide, Orientation::turn_left);
    const auto sideways = strata_test::encode_jpeg({}, tall.width, tall.height, tall.pixels);
    for (int i = 0; i < 4; ++i) {
        const std::string stem = "p" + std::to_string(i);
        const auto tagged = strata_test::inserted(sideways, 2, strata_test::exif_segment(strata_test::exif(6)));
        write_file(fixture.data() / (stem + (i < 2    ? ".jpg"
                                             : i == 2 ? ".webp"
                                                      : ".png")),
                   i < 2    ? tagged
                   : i == 2 ? strata_test::make_webp(wide, true)
                            : encode_png(400, 256, wide.pixels));
        write_file(fixture.data() / (stem + ".txt"), "x");
    }
    const auto source = fixture.open();
    ASSERT_EQ(source->collection().buckets().size(), 1U);
    const PictureSize size = source->collection().buckets()[0].size;
    EXPECT_GT(size.width, size.height);
    const at::Tensor latents_BCHW = source->next().latents_BCHW;
    const PlanarImage expected = cover_and_crop(wide, size.width, size.height);
    const std::int64_t block = size.width / latents_BCHW.size(3);
    for (std::int64_t b = 0; b < 4; ++b) {
        double difference = 0;
        for (std::int64_t y = 0; y < latents_BCHW.size(2); ++y)
            for (std::int64_t x = 0; x < latents_BCHW.size(3); ++x) {
                double mean = 0;  // of the red plane
                for (std::int64_t j = 0; j < block; ++j)
                    for (std::int64_t i = 0; i < block; ++i)
                        mean += expected.values[static_cast<std::size_t>((y * block + j) * size.width + x * block + i)];
                difference +=
                    std::abs(latents_BCHW[b][0][y][x].item<float>() - mean / static_cast<double>(block * block));
            }
        EXPECT_LT(difference / static_cast<double>(latents_BCHW.size(2) * latents_BCHW.size(3)), 0.03) << b;
    }
}

TEST(PictureSource, ReportSaysWhatWasFoundAndBucketed) {
    const Fixture fixture;
    write_file(fixture.data() / "bare.png", plain_png(64, 64, 0, 0, 0));
    auto cut = plain_png(64, 64, 9, 9, 9);
    cut.resize(cut.size() / 2);
    write_file(fixture.data() / "cut.png", cut);
    write_file(fixture.data() / "cut.txt", "A picture with half of its bytes");
    const auto source = fixture.open();
    const Report report = source->report();
    EXPECT_EQ(report.found, 38);
    EXPECT_EQ(report.used, 36);
    EXPECT_EQ(report.count(SkipReason::no_caption), 1);
    EXPECT_EQ(report.count(SkipReason::unreadable), 1);
    EXPECT_TRUE(report.skipped.back().place.ends_with("cut.png"));
    ASSERT_EQ(report.buckets.size(), 2U);
    EXPECT_EQ(report.buckets[0].count, 24);
    EXPECT_EQ(report.buckets[1].count, 12);
    EXPECT_GT(report.buckets[1].width, report.buckets[1].height);
    EXPECT_EQ(report.latents.made, 36);
    EXPECT_EQ(report.texts.made, 37);  // one more is the empty caption; the broken picture has none any more
    std::string text;
    for (const std::string& line : report.lines()) text += line + "\n";
    EXPECT_NE(text.find("38 pictures found, 36 used, 2 skipped"), std::string::npos) << text;
    EXPECT_NE(text.find("cut.png"), std::string::npos) << text;
}

TEST(PictureSource, ASecondStartEncodesNothing) {
    const Fixture fixture;
    (void)fixture.open();
    EXPECT_EQ(*fixture.codec->calls, 36);
    const int texts = *fixture.text->calls;
    const auto source = fixture.open();
    EXPECT_EQ(*fixture.codec->calls, 36);
    EXPECT_EQ(*fixture.text->calls, texts);
    EXPECT_EQ(source->report().latents.made, 0);
    EXPECT_EQ(source->report().latents.entries, 36);
}

TEST(PictureSource, InterruptedCachingGoesOnWhereItEnded) {
    const Fixture fixture;
    (void)fixture.open();
    const auto files = fixture.latent_files();
    for (std::size_t i = 0; i < 10; ++i) std::filesystem::remove(files[i]);
    EXPECT_EQ(fixture.open()->report().latents.made, 10);
}

TEST(PictureSource, EditedPicturesOtherSizesAndOtherEncodersNeverMeetAStaleEntry) {
    Fixture fixture;
    (void)fixture.open();
    write_file(fixture.data() / "p03.png", plain_png(64, 64, 250, 0, 0));
    EXPECT_EQ(fixture.open()->report().latents.made, 1);
    fixture.options.aspect_bucket_alignment = 32;  // 96 x 64 instead of 80 x 48
    EXPECT_EQ(fixture.open()->report().latents.made, 12);
    fixture.codec->name = "mean 2";
    EXPECT_EQ(fixture.open()->report().latents.made, 36);
    fixture.text->name = "length 2";
    EXPECT_EQ(fixture.open()->report().texts.made, 37);
}

TEST(PictureSource, ADamagedEntryIsMadeAgainAndNamed) {
    Fixture fixture;
    (void)fixture.open();
    const auto victim = fixture.latent_files().front();
    write_file(victim, "garbage");
    const Report report = fixture.open()->report();
    ASSERT_EQ(report.latents.rebuilt.size(), 1U);
    EXPECT_EQ(report.latents.rebuilt[0], victim.string());

    fixture.options.cache_memory_bytes = 0;  // then entries are read when they are needed, and damage shows then
    const auto source = fixture.open();
    write_file(victim, "garbage");
    for (int i = 0; i < 9 + 12; ++i) (void)source->next();
    ASSERT_EQ(source->report().latents.rebuilt.size(), 1U);
    EXPECT_EQ(source->report().latents.rebuilt[0], victim.string());
}

/// Same names, sizes and times, other pixels, and one folder for the latents of both.
TEST(PictureSource, DataSetsOfTwinFilesKeepTheirOwnLatents) {
    for (const bool memory : {true, false}) {
        Fixture fixture;
        if (!memory) fixture.options.cache_memory_bytes = 0;
        auto list = fixture.list();
        list.images.push_back(list.images[0]);
        const auto now = std::filesystem::file_time_type::clock::now();
        for (const int set : {0, 1}) {
            auto& images = list.images[static_cast<std::size_t>(set)];
            images.id = set == 0 ? "red" : "blue";
            images.instance_data_dir = fixture.folder.path() / images.id;
            for (int i = 0; i < 4; ++i) {
                const auto file = images.instance_data_dir / ("p" + std::to_string(i) + ".png");
                const auto green = static_cast<std::uint8_t>(i);  // equal pictures would share an entry
                auto png = set == 0 ? plain_png(64, 64, 200, green, 0) : plain_png(64, 64, 0, green, 200);
                ASSERT_LT(png.size(), 400U);
                png.resize(400);  // what follows the last chunk is not read
                write_file(file, png);
                write_file(images.instance_data_dir / ("p" + std::to_string(i) + ".txt"), images.id);
                std::filesystem::last_write_time(file, now);
            }
        }
        for (const int made : {8, 0}) {  // the second time from the files of the first
            strata::comm::SelfComm comm;
            const auto source = prepared<Source>(comm, list, fixture.codec, fixture.text, fixture.options);
            EXPECT_EQ(source->report().latents.made, made);
            ASSERT_EQ(source->micro_batches_per_epoch(), 2);
            for (int b = 0; b < 2; ++b) {
                const FluxBatch batch = source->next();
                for (std::int64_t i = 0; i < 4; ++i) {
                    const bool red = batch.captions[static_cast<std::size_t>(i)] == "red";
                    EXPECT_NEAR(batch.latents_BCHW[i][red ? 0 : 2][0][0].item<float>(), 200 / 127.5F - 1, 1e-4F);
                    EXPECT_NEAR(batch.latents_BCHW[i][red ? 2 : 0][0][0].item<float>(), -1, 1e-4F);
                }
            }
        }
    }
}

TEST(PictureSource, ARelativePathToTheSameFolderFindsTheSameLatents) {
    const Fixture fixture;
    (void)fixture.open();
    auto list = fixture.list();
    list.images[0].instance_data_dir = std::filesystem::relative(fixture.data());
    strata::comm::SelfComm comm;
    EXPECT_EQ((prepared<Source>(comm, list, fixture.codec, fixture.text, fixture.options)->report().latents.made), 0);
}

TEST(PictureSource, ACacheFolderThatCannotBeWrittenIsRefusedByItsKey) {
    const Fixture fixture;
    write_file(fixture.folder.path() / "file", "text");
    // A folder in /proc cannot be made by anybody, and the system calls that "no such file".
    for (const std::filesystem::path& folder :
         {fixture.folder.path() / "file" / "cache", std::filesystem::path{"/proc/no/cache"}}) {
        for (const std::string key : {"cache_dir_vae", "cache_dir"}) {
            auto list = fixture.list();
            (key == "cache_dir" ? list.text_embeds[0].cache_dir : list.images[0].cache_dir_vae) = folder;
            strata::comm::SelfComm comm;
            const auto error =
                thrown_by([&] { (void)prepared<Source>(comm, list, fixture.codec, fixture.text, fixture.options); });
            EXPECT_EQ(error.code, Errc::bad_reference) << error.message;
            EXPECT_TRUE(strata::is_bad_input(error.code));
            EXPECT_TRUE(error.says("'" + key + "'")) << error.message;
            EXPECT_TRUE(error.says(folder.string())) << error.message;
        }
    }
    EXPECT_EQ(*fixture.codec->calls, 0);
}

/// A folder that takes the test of the beginning and is gone when the first latents are there.
TEST(PictureSource, ACacheThatBreaksWhileItIsFilledIsNoUnreadablePicture) {
    Fixture fixture;
    fixture.options.threads = 1;
    auto list = fixture.list();
    const auto link = fixture.folder.path() / "link";
    std::filesystem::create_directories(fixture.folder.path() / "real");
    std::filesystem::create_directory_symlink(fixture.folder.path() / "real", link);
    list.images[0].cache_dir_vae = link;
    fixture.options.progress = [&, is_broken = false](std::string_view what, std::int64_t, std::int64_t) mutable {
        if (what != "latents" || std::exchange(is_broken, true)) return;
        std::filesystem::remove(link);
        std::filesystem::create_directory_symlink("/proc", link);
    };
    strata::comm::SelfComm comm;
    const auto error =
        thrown_by([&] { (void)prepared<Source>(comm, list, fixture.codec, fixture.text, fixture.options); });
    EXPECT_EQ(error.code, Errc::not_found) << error.message;
    EXPECT_TRUE(error.says("link")) << error.message;
}

TEST(PictureSource, BeingStoppedEndsTheStartAndTheNextOneGoesOn) {
    Fixture fixture;
    fixture.options.threads = 1;
    fixture.options.vae_batch_size = 1;
    bool stop = true;
    fixture.options.stopped = [&] { return stop; };
    EXPECT_EQ(thrown_by([&] { (void)fixture.open(); }).code, Errc::interrupted);
    EXPECT_EQ(*fixture.codec->calls, 0);

    stop = false;
    fixture.options.progress = [&](std::string_view what, std::int64_t done, std::int64_t) {
        stop = what == "latents" && done >= 5;
    };
    const auto error = thrown_by([&] { (void)fixture.open(); });
    EXPECT_EQ(error.code, Errc::interrupted);
    EXPECT_FALSE(strata::is_bad_input(error.code));
    const int kept = *fixture.codec->calls;
    EXPECT_GE(kept, 5);
    EXPECT_LT(kept, 10);  // items under way are finished, no more are begun
    EXPECT_EQ(fixture.latent_files().size(), static_cast<std::size_t>(kept));

    stop = false;
    fixture.options.progress = [&](std::string_view what, std::int64_t, std::int64_t) { stop = what == "captions"; };
    EXPECT_EQ(thrown_by([&] { (void)fixture.open(); }).code, Errc::interrupted);
    EXPECT_EQ(*fixture.codec->calls, 36);
    fixture.options.stopped = {};
    EXPECT_EQ(fixture.open()->report().latents.made, 0);
}

TEST(PictureSource, SeekGivesWhatAnUninterruptedRunGetsThere) {
    Fixture fixture;
    fixture.options.caption_dropout_probability = 0.3;
    const auto straight = fixture.open();
    std::vector<FluxBatch> all;
    for (int i = 0; i < 25; ++i) all.push_back(straight->next());
    const auto other = fixture.open();
    for (const std::int64_t position : {24, 0, 9, 13}) {
        other->seek(position);
        for (std::int64_t i = position; i < std::min<std::int64_t>(position + 3, 25); ++i) {
            const FluxBatch batch = other->next();
            const FluxBatch& expected = all[static_cast<std::size_t>(i)];
            EXPECT_EQ(batch.samples, expected.samples);
            EXPECT_EQ(batch.captions, expected.captions);
            EXPECT_TRUE(batch.latents_BCHW.equal(expected.latents_BCHW));
            EXPECT_TRUE(batch.text_BTE.equal(expected.text_BTE));
        }
    }
}

TEST(PictureSource, CaptionsAreDroppedAtTheStatedRateAndAnewAtEachVisit) {
    Fixture fixture;
    fixture.options.caption_dropout_probability = 0.25;
    const auto source = fixture.open();
    int dropped = 0;
    std::map<std::string, std::set<bool>> per_sample;
    for (int i = 0; i < 9 * 40; ++i) {
        const FluxBatch batch = source->next();
        for (std::size_t k = 0; k < 4; ++k) {
            const bool empty = batch.captions[k].empty();
            dropped += empty ? 1 : 0;
            per_sample[batch.samples[k]].insert(empty);
            EXPECT_EQ(batch.pooled_BE[static_cast<std::int64_t>(k)][0].item<float>() == 0, empty);
        }
    }
    EXPECT_NEAR(dropped, 1440 * 0.25, 5 * 17);  // five standard deviations
    for (const auto& [sample, kinds] : per_sample) EXPECT_EQ(kinds.size(), 2U) << sample;
}

TEST(PictureSource, TooSmallABucketStopsBeforeAnythingIsEncoded) {
    Fixture fixture;
    fixture.options.gradient_accumulation_steps = 4;  // 16 samples, and the wide bucket holds 12
    const auto error = thrown_by([&] { (void)fixture.open(); });
    EXPECT_EQ(error.code, Errc::small_bucket);
    EXPECT_TRUE(error.says("holds 12 samples")) << error.message;
    EXPECT_EQ(*fixture.codec->calls, 0);
    EXPECT_FALSE(std::filesystem::exists(fixture.folder.path() / "vae"));
    fixture.options.allow_dataset_oversubscription = true;
    const auto source = fixture.open();
    const Report report = source->report();
    EXPECT_EQ(report.buckets[1].repeats, 1);
    EXPECT_EQ(source->micro_batches_per_epoch(), 4 * (2 + 2));
    std::string text;
    for (const std::string& line : report.lines()) text += line + "\n";
    EXPECT_NE(text.find("raised from 0 to hold an effective batch of 16"), std::string::npos) << text;
}

TEST(PictureSource, BadInputIsRefusedByName) {
    Fixture fixture;
    fixture.options.aspect_bucket_alignment = 12;
    EXPECT_EQ(thrown_by([&] { (void)fixture.open(); }).code, Errc::bad_value);
    for (const std::int64_t alignment : {8, 24}) {  // whole latents, and no whole patches of 2 x 2
        fixture.options.aspect_bucket_alignment = alignment;
        const auto odd = thrown_by([&] { (void)fixture.open(); });
        EXPECT_EQ(odd.code, Errc::bad_value);
        EXPECT_TRUE(odd.says("use a multiple of 16")) << odd.message;
        EXPECT_EQ(*fixture.codec->calls, 0);
    }
    fixture.options.aspect_bucket_alignment = 16;
    for (const auto& entry : std::filesystem::directory_iterator{fixture.data()})
        if (entry.path().extension() == ".txt") write_file(entry.path(), "");
    const auto error = thrown_by([&] { (void)fixture.open(); });
    EXPECT_EQ(error.code, Errc::no_samples);
    EXPECT_TRUE(error.says("36 no caption")) << error.message;
    EXPECT_TRUE(error.says("p00.png")) << error.message;
}

TEST(PictureSource, AnErrorWhileTrainingNamesTheFile) {
    Fixture fixture;
    fixture.options.cache_memory_bytes = 0;
    fixture.options.prefetch_batches = 1;
    const auto source = fixture.open();
    std::filesystem::remove_all(fixture.folder.path() / "vae");
    std::filesystem::remove_all(fixture.data());
    const auto error = thrown_by([&] {
        for (int i = 0; i < 9; ++i) (void)source->next();
    });
    EXPECT_EQ(error.code, Errc::not_found);
    EXPECT_TRUE(error.says(".png")) << error.message;
}

TEST(PictureSource, EndsPromptlyWhileBatchesAreMade) {
    Fixture fixture;
    fixture.options.prefetch_batches = 100;
    fixture.options.cache_memory_bytes = 0;
    for (int taken = 0; taken < 3; ++taken) {
        auto source = fixture.open();
        for (int i = 0; i < taken; ++i) (void)source->next();
        const auto begin = std::chrono::steady_clock::now();
        source.reset();
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{1});
    }
}

TEST(PictureSource, ProgressCountsToTheEndAndCompressedCachesWork) {
    Fixture fixture;
    fixture.options.compress_disk_cache = true;
    std::map<std::string, std::int64_t> last;
    fixture.options.progress = [&](std::string_view what, std::int64_t done, std::int64_t total) {
        if (total != 0) {  // 0: unknown
            EXPECT_LE(done, total);
        }
        last[std::string{what}] = done;
    };
    (void)fixture.open()->next();
    EXPECT_EQ(last, (std::map<std::string, std::int64_t>{{"pictures listed", 36},
                                                         {"pictures examined", 36},
                                                         {"latents looked up", 36},
                                                         {"latents", 36},
                                                         {"captions looked up", 37},
                                                         {"captions", 37}}));
    EXPECT_TRUE(fixture.latent_files().front().string().ends_with(".safetensors.gz"));
    EXPECT_EQ(fixture.open()->report().latents.made, 0);
}

TEST(PictureSource, EachCacheHasItsOwnCompression) {
    const Fixture fixture;
    strata::config::DatasetList list = fixture.list();
    list.images[0].compress_disk_cache = true;
    strata::comm::SelfComm comm;
    (void)prepared<Source>(comm, list, fixture.codec, fixture.text, fixture.options)->next();
    for (const auto& file : fixture.latent_files()) EXPECT_TRUE(file.string().ends_with(".safetensors.gz")) << file;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{fixture.folder.path() / "text"})
        EXPECT_TRUE(entry.is_directory() || entry.path().string().ends_with(".safetensors")) << entry.path();
}

/// A folder on a disk that has room for so many more objects, for all copies together.
class SmallDisk : public strata::Local {
public:
    using strata::Local::Local;
    static inline std::atomic<int> room = 0;
    void put(std::string_view key, std::span<const std::byte> bytes) const {
        if (!bytes.empty() && room-- <= 0)
            throw strata::Error{Errc::no_space, "no space for '" + where(key) + "'", "make room"};
        Local::put(key, bytes);
    }
};

TEST(PictureSource, AFullDiskEndsFillingAndLosesNothing) {
    const Fixture fixture;
    strata::comm::SelfComm comm;
    const auto open = [&] {
        return prepared<PictureSource<strata_test::FakeRecipe, SmallDisk>>(comm, fixture.list(), fixture.codec,
                                                                           fixture.text, fixture.options);
    };
    SmallDisk::room = 20;
    const auto error = thrown_by([&] { (void)open(); });
    EXPECT_EQ(error.code, Errc::no_space);
    EXPECT_TRUE(error.says((fixture.folder.path() / "vae").string())) << error.message;
    EXPECT_EQ(fixture.latent_files().size(), 20U);
    SmallDisk::room = 1000;
    EXPECT_EQ(open()->report().latents.made, 16);
    EXPECT_EQ(fixture.latent_files().size(), 36U);
}

}  // namespace
