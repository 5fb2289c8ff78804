// What the keys of a data set do to the visits of its pictures: crops, captions, turns.

#include <cmath>
#include <filesystem>
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
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../../support/fake_encoders.hpp"
#include "../../support/pictures.hpp"
#include "../../support/prepared.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::data;
using strata::models::FluxBatch;
using namespace strata::pictures;
using strata::Errc;
using strata::config::CaptionShuffle;
using strata::config::CropAspect;
using strata::config::CropStyle;
using strata_test::LengthText;
using strata_test::MeanCodec;
using strata_test::prepared;
using strata_test::thrown_by;
using Source = PictureSource<strata_test::FakeRecipe, strata::Local>;

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    strata::storage::write_file(path, bytes, strata::storage::Durability::process_end);
}

/// A picture that is red by its column and green by its row, so that a crop says where it is from; and blue by its number, because
/// pictures that hold the same are one to a cache.
std::vector<std::byte> ramp(std::int64_t width, std::int64_t height, std::int64_t number) {
    std::vector<std::uint8_t> pixels;
    for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
            for (const std::int64_t value : {x, y, number}) pixels.push_back(static_cast<std::uint8_t>(value));
    return encode_png(width, height, pixels);
}

/// Data sets `first` and `second` of ramps.
struct Fixture {
    strata_test::TemporaryFolder folder;
    std::shared_ptr<MeanCodec> codec = std::make_shared<MeanCodec>();
    std::shared_ptr<LengthText> text = std::make_shared<LengthText>();
    SourceOptions options;
    strata::config::DatasetList list;

    Fixture() {
        options.train_batch_size = 4;
        options.aspect_bucket_alignment = 16;
        options.caption_dropout_probability = 0;
        options.threads = 2;
        strata::config::TextEmbeds embeds;
        embeds.id = "text";
        embeds.cache_dir = folder.path() / "text";
        list.text_embeds.push_back(embeds);
    }
    strata::config::ImageDataset& add(const std::string& id, int count, const std::string& caption,
                                      std::int64_t width = 192, std::int64_t height = 64) {
        for (int i = 0; i < count; ++i) {
            const std::filesystem::path stem = folder.path() / id / ("p" + std::to_string(100 + i));
            write_file(stem.string() + ".png", ramp(width, height, i));
            write_file(stem.string() + ".txt", std::as_bytes(std::span{caption.data(), caption.size()}));
        }
        strata::config::ImageDataset images;
        images.id = id;
        images.instance_data_dir = folder.path() / id;
        images.cache_dir_vae = folder.path() / ("vae_" + id);
        images.text_embeds = "text";
        images.resolution = 64;
        list.images.push_back(images);
        return list.images.back();
    }
    [[nodiscard]] std::unique_ptr<Source> open() const {
        static strata::comm::SelfComm comm;  // outlives every source
        return prepared<Source>(comm, list, codec, text, options);
    }
};

/// The first pixels of a crop, from the mean colour of its first block.
double left_of(const FluxBatch& batch, std::int64_t i) {
    return (batch.latents_BCHW[i][0][0][0].item<double>() + 1) * 127.5 - 3.5;
}
double top_of(const FluxBatch& batch, std::int64_t i) {
    return (batch.latents_BCHW[i][1][0][0].item<double>() + 1) * 127.5 - 3.5;
}
std::string id_of(const std::string& sample) { return std::filesystem::path{sample}.parent_path().filename().string(); }

TEST(PictureVisits, CenterAndCornerShowTheirPartOfThePicture) {
    for (const CropStyle style : {CropStyle::center, CropStyle::corner}) {
        Fixture fixture;
        auto& images = fixture.add("first", 4, "x");
        images.crop = true;
        images.crop_style = style;
        const FluxBatch batch = fixture.open()->next();
        ASSERT_EQ(batch.latents_BCHW.sizes(), (std::vector<std::int64_t>{4, 3, 8, 8}));
        for (std::int64_t i = 0; i < 4; ++i) {
            EXPECT_NEAR(left_of(batch, i), style == CropStyle::center ? 64 : 0, 0.1);
            EXPECT_NEAR(top_of(batch, i), 0, 0.1);
        }
    }
}

TEST(PictureVisits, AnotherCropNeverMeetsAStaleEntry) {
    Fixture fixture;
    auto& images = fixture.add("first", 4, "x", 384, 128);
    images.crop = true;
    EXPECT_EQ(fixture.open()->report().latents.made, 4);
    images.crop_style = CropStyle::corner;
    EXPECT_EQ(fixture.open()->report().latents.made, 4);
    EXPECT_EQ(fixture.open()->report().latents.made, 0);
    images.maximum_image_size = 200;      // the pictures have the area of a square of 222,
    images.target_downsample_size = 150;  // and what covers the box that of one of 111
    EXPECT_EQ(fixture.open()->report().latents.made, 4);
}

TEST(PictureVisits, RandomCropsAreMadeAnewInEachEpochAndTheSameOnesAgain) {
    Fixture fixture;
    fixture.options.train_batch_size = 8;
    auto& images = fixture.add("first", 8, "x");
    images.crop = true;
    images.crop_style = CropStyle::random;
    images.vae_cache_disable = true;
    const auto source = fixture.open();
    EXPECT_EQ(*fixture.codec->calls, 0);
    EXPECT_EQ(source->report().latents.entries, 0);
    std::map<std::string, std::set<int>> lefts;
    std::vector<FluxBatch> all;
    for (int epoch = 0; epoch < 12; ++epoch) {
        all.push_back(source->next());
        for (std::int64_t i = 0; i < 8; ++i) {
            const double left = left_of(all.back(), i);
            EXPECT_GT(left, -0.1);
            EXPECT_LT(left, 128.1);
            lefts[all.back().samples[static_cast<std::size_t>(i)]].insert(static_cast<int>(std::lround(left)));
        }
    }
    EXPECT_EQ(lefts.size(), 8U);
    for (const auto& [sample, places] : lefts) EXPECT_GE(places.size(), 8U) << sample;
    const auto again = fixture.open();
    again->seek(7);
    const FluxBatch batch = again->next();
    EXPECT_EQ(batch.samples, all[7].samples);
    EXPECT_TRUE(batch.latents_BCHW.equal(all[7].latents_BCHW));
    EXPECT_FALSE(std::filesystem::exists(fixture.folder.path() / "vae_first"));
}

/// Files below a folder.
std::int64_t files_in(const std::filesystem::path& folder) {
    if (!std::filesystem::exists(folder)) return 0;
    std::int64_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator{folder})
        files += entry.is_regular_file() ? 1 : 0;
    return files;
}

TEST(PictureVisits, LatentsOnDemandAreMadeAtTheFirstVisitAndKept) {
    for (const bool by_skipping : {false, true}) {
        Fixture fixture;
        fixture.options.prefetch_batches = 1;
        auto& images = fixture.add("first", 8, "x");
        const auto whole = fixture.open()->next();
        std::filesystem::remove_all(fixture.folder.path() / "vae_first");
        *fixture.codec->calls = 0;
        (by_skipping ? images.skip_file_discovery.vae : images.vae_cache_ondemand) = true;
        {
            const auto source = fixture.open();
            EXPECT_EQ(*fixture.codec->calls, 0);
            EXPECT_EQ(source->report().latents.entries, 0);
            EXPECT_TRUE(source->next().latents_BCHW.equal(whole.latents_BCHW));
            for (int i = 0; i < 6; ++i) (void)source->next();
            EXPECT_EQ(*fixture.codec->calls, 8);
        }
        EXPECT_EQ(files_in(fixture.folder.path() / "vae_first"), 8);
        const auto again = fixture.open();
        (void)again->next();
        EXPECT_EQ(*fixture.codec->calls, 8);
    }
}

TEST(PictureVisits, CaptionsThatAreNotLookedForAreEmbeddedWhenTheyAreNeeded) {
    Fixture fixture;
    fixture.add("first", 4, "x").skip_file_discovery.text = true;
    {
        const auto source = fixture.open();
        EXPECT_EQ(*fixture.text->calls, 0);
        EXPECT_EQ(source->next().captions, (std::vector<std::string>(4, "x")));
        EXPECT_GE(*fixture.text->calls, 1);
    }  // threads that embed it at the same time have files under other names until then
    EXPECT_EQ(files_in(fixture.folder.path() / "text"), 1);
}

TEST(PictureVisits, LatentsOfAnEpochAreMadeOnceAndRemovedWhenItIsOver) {
    Fixture fixture;
    fixture.options.train_batch_size = 8;
    fixture.options.prefetch_batches = 1;
    fixture.options.threads = 1;
    fixture.options.cache_memory_bytes = 0;
    auto& images = fixture.add("first", 8, "x");
    images.crop = true;
    images.crop_style = CropStyle::random;
    images.vae_cache_clear_each_epoch = true;
    images.repeats = 3;
    const std::filesystem::path cache = fixture.folder.path() / "vae_first";
    FluxBatch third;
    {
        const auto source = fixture.open();
        EXPECT_EQ(*fixture.codec->calls, 0);
        for (int epoch = 0; epoch < 5; ++epoch) {
            std::map<std::string, std::set<int>> lefts;
            for (int visit = 0; visit < 4; ++visit) {
                const FluxBatch batch = source->next();
                if (epoch == 3 && visit == 1) third = batch;
                for (std::int64_t i = 0; i < 8; ++i)
                    lefts[batch.samples[static_cast<std::size_t>(i)]].insert(
                        static_cast<int>(std::lround(left_of(batch, i))));
                EXPECT_LE(files_in(cache), 3 * 8);  // of an epoch, of that ahead, and of one that is being removed
            }
            EXPECT_EQ(lefts.size(), 8U);
            for (const auto& [sample, places] : lefts) EXPECT_EQ(places.size(), 1U) << sample;
        }
        // The batch ahead may be of the sixth epoch.
        EXPECT_GE(*fixture.codec->calls, 5 * 8);
        EXPECT_LE(*fixture.codec->calls, 6 * 8);
    }
    EXPECT_GE(files_in(cache), 8);
    const auto again = fixture.open();
    EXPECT_EQ(files_in(cache), 0);
    again->seek(3 * 4 + 1);
    const FluxBatch batch = again->next();
    EXPECT_EQ(batch.samples, third.samples);
    EXPECT_TRUE(batch.latents_BCHW.equal(third.latents_BCHW));
}

TEST(PictureVisits, EveryBatchDrawsOneOfTheShapes) {
    Fixture fixture;
    auto& images = fixture.add("first", 12, "x", 128, 128);
    images.crop = true;
    images.crop_aspect = CropAspect::random;
    images.crop_aspect_buckets = {{1.0, 0.5}, {0.5, 0.25}, {2.0, 0.25}};
    images.vae_cache_disable = true;
    const auto source = fixture.open();
    ASSERT_EQ(source->micro_batches_per_epoch(), 3);
    ASSERT_EQ(source->collection().buckets().size(), 1U);
    std::map<std::int64_t, int> widths;
    std::map<std::string, int> visits;
    for (int i = 0; i < 300; ++i) {
        const FluxBatch batch = source->next();
        ++widths[batch.latents_BCHW.size(3)];
        for (const std::string& sample : batch.samples) ++visits[sample];
    }
    ASSERT_EQ(widths.size(), 3U);
    EXPECT_NEAR(widths[8], 150, 5 * 9);
    for (const auto& [sample, count] : visits) EXPECT_EQ(count, 100) << sample;
    std::string text;
    for (const std::string& line : source->report().lines()) text += line + "\n";
    EXPECT_NE(text.find("and 2 other sizes of 'first': 12 samples"), std::string::npos) << text;
}

TEST(PictureVisits, CaptionsAreShuffledWithThePromptInFront) {
    Fixture fixture;
    auto& images = fixture.add("first", 4, "a, b, c");
    images.instance_prompt = "sks";
    images.prepend_instance_prompt = true;
    images.caption_shuffle = CaptionShuffle{true, 50, std::nullopt, {}, 1, true};
    const auto source = fixture.open();
    EXPECT_EQ(source->report().texts.made, 3);  // two orders, and none
    std::map<std::string, int> seen;
    for (int i = 0; i < 50; ++i)
        for (const std::string& caption : source->next().captions) ++seen[caption];
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_GT(seen["sks a, b, c"], 50);
    EXPECT_GT(seen["sks a, c, b"], 50);
    EXPECT_EQ(*fixture.text->calls, 3);
}

TEST(PictureVisits, OnlySoManyPicturesAreUsed) {
    Fixture fixture;
    auto& images = fixture.add("first", 20, "x");
    images.max_num_samples = 8;
    const auto source = fixture.open();
    EXPECT_EQ(source->micro_batches_per_epoch(), 2);
    EXPECT_EQ(source->report().used, 8);
    EXPECT_EQ(*fixture.codec->calls, 8);
    std::string text;
    for (const std::string& line : source->report().lines()) text += line + "\n";
    EXPECT_NE(text.find("data set 'first': 8 of 20 pictures are used (max_num_samples)"), std::string::npos) << text;
    std::set<std::string> samples;
    for (int i = 0; i < 8; ++i)
        for (const std::string& sample : source->next().samples) samples.insert(sample);
    EXPECT_EQ(samples.size(), 8U);
}

TEST(PictureVisits, DataSetsHaveTheirShareAndTheirTurns) {
    Fixture fixture;
    fixture.options.gradient_accumulation_steps = 2;
    fixture.add("first", 16, "x").end_step = 10;  // of steps of two micro-batches
    fixture.add("second", 16, "y").probability = 0.5;
    fixture.list.images.back().end_epoch = 6;
    const auto source = fixture.open();
    EXPECT_EQ(source->micro_batches_per_epoch(), 4 + 2);
    std::vector<std::map<std::string, int>> epochs;
    std::int64_t position = 0;
    for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
        epochs.emplace_back();
        for (; position < source->micro_batches_of(epoch + 1); ++position) {
            const FluxBatch batch = source->next();
            const std::string id = id_of(batch.samples[0]);
            for (const std::string& sample : batch.samples) EXPECT_EQ(id_of(sample), id);
            EXPECT_TRUE(id == "second" || position < 20);
            ++epochs.back()[id];
        }
    }
    for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(epochs[static_cast<std::size_t>(epoch)]["first"], 4);
    EXPECT_FALSE(epochs[4].contains("first"));
    for (auto& epoch : epochs) EXPECT_EQ(epoch["second"], 2);
    const auto error = thrown_by([&] { (void)source->next(); });
    EXPECT_EQ(error.code, Errc::no_samples);
    EXPECT_TRUE(error.says("no data set takes part in training after step " + std::to_string(position / 2)))
        << error.message;
    std::string text;
    for (const std::string& line : source->report().lines()) text += line + "\n";
    EXPECT_NE(text.find("no data set takes part any more after step " + std::to_string(position / 2)),
              std::string::npos)
        << text;
}

TEST(PictureVisits, SomethingMustBeThereFromTheFirstStepOn) {
    Fixture fixture;
    fixture.add("first", 4, "x").start_step = 5;
    const auto error = thrown_by([&] { (void)fixture.open(); });
    EXPECT_EQ(error.code, Errc::no_samples);
    EXPECT_TRUE(error.says("takes part from the first step on")) << error.message;
}

TEST(PictureVisits, RegularisationDataNeedsAnAdapterAndIsToldByItsBatches) {
    Fixture fixture;
    fixture.add("first", 4, "x");
    fixture.add("second", 4, "y").is_regularisation_data = true;
    const auto error = thrown_by([&] { (void)fixture.open(); });
    EXPECT_EQ(error.code, Errc::bad_value);
    EXPECT_TRUE(error.says("is_regularisation_data of data set 'second' is true")) << error.message;
    fixture.options.trains_adapter = true;
    const auto source = fixture.open();
    for (int i = 0; i < 4; ++i) {
        const FluxBatch batch = source->next();
        EXPECT_EQ(batch.is_regularisation_data, id_of(batch.samples[0]) == "second");
    }
}

TEST(PictureVisits, SimpletunerSizesAreTakenWhenTheyAreAskedFor) {
    Fixture fixture;
    fixture.add("first", 4, "x", 100, 64);
    fixture.options.bucket_mode = strata::config::BucketMode::simpletuner;
    const auto source = fixture.open();
    ASSERT_EQ(source->collection().buckets().size(), 1U);
    EXPECT_EQ(source->collection().buckets()[0].size, (PictureSize{80, 48}));
    const FluxBatch batch = source->next();
    EXPECT_EQ(batch.latents_BCHW.size(3), 10);
    EXPECT_EQ(batch.latents_BCHW.size(2), 6);
}

}  // namespace
