// Conditioning pictures reach the recipe framed as their pictures are, and entries know them by what they hold.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>
#include <strata/testing/recipe_conformance.hpp>

#include "../../support/made_files.hpp"
#include "../../support/pair_recipe.hpp"
#include "../../support/paired_sets.hpp"
#include "../../support/pictures.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::data;
using strata::Errc;
using strata_test::PairRecipe;
using strata_test::thrown_by;
namespace config = strata::config;
namespace fs = std::filesystem;
using Pairs = PictureSource<PairRecipe, strata::Local>;

constexpr auto fast = strata::storage::Durability::process_end;

/// Red rises from left to right, green from top to bottom, and blue tells pictures apart: the same at any size.
std::vector<std::byte> slope(int width, int height, int blue) {
    std::vector<std::uint8_t> rgb;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            for (const double value : {(x + 0.5) / width * 255, (y + 0.5) / height * 255, blue * 1.0})
                rgb.push_back(static_cast<std::uint8_t>(value));
    return strata::pictures::encode_png(width, height, rgb);
}
/// White on the right from the middle on.
std::vector<std::byte> half_mask(int width, int height) {
    std::vector<std::uint8_t> rgb;
    for (int i = 0; i < width * height; ++i)
        rgb.insert(rgb.end(), 3, i % width >= width / 2 ? std::uint8_t{255} : std::uint8_t{0});
    return strata::pictures::encode_png(width, height, rgb);
}

/// Eight pictures of 96 x 64, their hints at twice and their masks at half that size.
struct Conditioning : testing::Test {
    strata_test::TemporaryFolder temporary;
    fs::path folder = temporary.path();
    SourceOptions options;

    Conditioning() {
        for (int i = 0; i < 8; ++i) {
            const std::string stem = "p" + std::to_string(i);
            put("photos/" + stem + ".png", slope(96, 64, 10 * i));
            put("hints/" + stem + ".png", slope(192, 128, 10 * i + 5));
            put("masks/" + stem + ".png", half_mask(48, 32));
        }
        options.train_batch_size = 4;
        options.aspect_bucket_alignment = 16;
        options.caption_dropout_probability = 0;
        options.threads = 2;
        options.index_folder = folder / "index";
    }
    void put(const std::string& name, const std::vector<std::byte>& bytes) const {
        strata::storage::write_file(folder / name, bytes, fast);
    }
    [[nodiscard]] config::DatasetList list() const { return strata_test::paired_sets(folder, 64); }
    [[nodiscard]] std::unique_ptr<Pairs> prepared(const config::DatasetList& sets) const {
        static strata::comm::SelfComm comm;
        auto source = std::make_unique<Pairs>(comm, sets, std::make_shared<const PairRecipe>(), options);
        source->prepare();
        return source;
    }
    [[nodiscard]] std::int64_t made() const { return prepared(list())->report().latents.made; }
};

/// The hint shows what the picture shows at each pixel, and the mask is white where its red is above the middle.
void expect_framed_alike(const PairRecipe::Batch& batch, double blue_distance = 5) {
    const auto apart = (batch.pixels_BCHW - batch.hint_BCHW).abs() * 127.5;
    EXPECT_LT(apart.slice(1, 0, 2).max().item<double>(), 3.0);  // half a step of the smaller picture is 1.3
    EXPECT_NEAR(apart.select(1, 2).mean().item<double>(), blue_distance, 0.5);
    const auto red = batch.pixels_BCHW.select(1, 0);
    const auto mask = batch.mask_B1HW.select(1, 0);
    EXPECT_TRUE(mask.masked_select(red > 0.05).eq(1).all().item<bool>());
    EXPECT_TRUE(mask.masked_select(red < -0.05).eq(0).all().item<bool>());
    EXPECT_GT(mask.sum().item<double>(), 0);
    EXPECT_LT(mask.mean().item<double>(), 1);
}

TEST_F(Conditioning, PicturesOfOtherSizesAreFramedAlike) {
    const auto source = prepared(list());
    EXPECT_EQ(source->report().used, 8);
    EXPECT_EQ(source->report().latents.made, 8);
    for (int b = 0; b < 2; ++b) {
        const auto batch = source->next();
        EXPECT_EQ(batch.mask_B1HW.size(1), 1);
        expect_framed_alike(batch);
    }
}

TEST_F(Conditioning, EveryCropIsTheirsToo) {
    auto sets = list();
    config::ImageDataset& photos = sets.images[0];
    photos.crop = true;
    photos.resolution = 48;
    photos.maximum_image_size = 64;
    photos.target_downsample_size = 56;
    photos.crop_style = config::CropStyle::corner;
    {
        const auto batch = prepared(sets)->next();
        EXPECT_EQ(batch.pixels_BCHW.size(3), 48);
        expect_framed_alike(batch);
        EXPECT_LT(batch.pixels_BCHW[0][0].max().item<double>(), 0.5) << "the upper left of a wide picture";
    }
    photos.crop_style = config::CropStyle::random;
    photos.vae_cache_disable = true;
    const auto source = prepared(sets);
    for (int b = 0; b < 4; ++b) {
        const auto batch = source->next();
        const auto apart = (batch.pixels_BCHW - batch.hint_BCHW).abs() * 127.5;
        EXPECT_LT(apart.slice(1, 0, 2).max().item<double>(), 3.0);
        const auto red = batch.pixels_BCHW.select(1, 0);
        EXPECT_TRUE(batch.mask_B1HW.select(1, 0).masked_select(red > 0.05).eq(1).all().item<bool>());
    }
}

TEST_F(Conditioning, OrientationIsRespectedOnEach) {
    // Stored turned by a quarter, and said to be: shown upright they are what the others are.
    std::vector<std::uint8_t> rgb;
    for (int row = 0; row < 192; ++row)
        for (int column = 0; column < 128; ++column) {  // orientation 8: row 0 is the left edge, column 0 the bottom
            const double x = (row + 0.5) / 192;
            const double y = (127 - column + 0.5) / 128;
            for (const double value : {x * 255, y * 255, 35.0}) rgb.push_back(static_cast<std::uint8_t>(value));
        }
    const auto stored = strata::pictures::encode_png(128, 192, rgb);
    constexpr std::size_t after_header = 33;
    for (int i = 0; i < 8; ++i) {
        const std::string name = "p" + std::to_string(i) + ".png";
        put("hints/" + name,
            strata_test::inserted(stored, after_header, strata_test::png_chunk("eXIf", strata_test::exif(8))));
        put("photos/" + name, slope(96, 64, 30 + i));
    }
    const auto source = prepared(list());
    const auto batch = source->next();
    const auto apart = (batch.pixels_BCHW - batch.hint_BCHW).abs() * 127.5;
    EXPECT_LT(apart.slice(1, 0, 2).max().item<double>(), 3.0);
    for (const std::string& note : source->report().notes) EXPECT_EQ(note.find("stretched"), std::string::npos) << note;
}

TEST_F(Conditioning, AnotherConditioningPictureIsEncodedAndTheSameIsNot) {
    EXPECT_EQ(made(), 8);
    EXPECT_EQ(made(), 0);
    const auto date = fs::last_write_time(folder / "masks/p3.png");
    std::vector<std::byte> other = half_mask(48, 32);
    other.push_back(std::byte{0});  // of other bytes, which is all that counts
    put("masks/p3.png", other);
    fs::last_write_time(folder / "masks/p3.png", date);
    EXPECT_EQ(made(), 1);
    put("hints/p4.png", slope(192, 128, 200));
    auto source = prepared(list());
    EXPECT_EQ(source->report().latents.made, 1);
    double brightest = 0;
    for (int b = 0; b < 2; ++b)
        brightest = std::max(brightest, source->next().hint_BCHW.select(1, 2).max().item<double>());
    EXPECT_NEAR((brightest + 1) * 127.5, 200, 1);
    put("masks/p3.png", half_mask(48, 32));  // what was there comes back, and its entry is still there
    EXPECT_EQ(made(), 0);
    for (const char* set : {"hints", "masks", "photos"})
        for (const auto& file : fs::directory_iterator{folder / set})
            fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours{1});
    EXPECT_EQ(made(), 0) << "touched";
    fs::rename(folder / "masks", folder / "moved");
    auto moved = list();
    moved.conditioning[1].instance_data_dir = folder / "moved";
    EXPECT_EQ(prepared(moved)->report().latents.made, 0) << "moved";
}

TEST_F(Conditioning, AMaskThatIsUsedAsAPictureIsAnotherEntry) {
    EXPECT_EQ(made(), 8);
    struct TwoPictures : PairRecipe {
        std::vector<strata::pictures::ConditioningKind> conditioning() const {
            return std::vector<strata::pictures::ConditioningKind>(2);
        }
        std::vector<NamedTensors> encode_pictures(PictureEncoders&, const PictureBatch& batch) const {
            std::vector<NamedTensors> entries;
            for (std::int64_t i = 0; i < batch.pixels_B3HW.size(0); ++i)
                entries.push_back({{"pixels", batch.pixels_B3HW[i]},
                                   {"hint", batch.conditioning[0][i]},
                                   {"mask", batch.conditioning[1][i].slice(0, 0, 1)}});
            return entries;
        }
    };
    auto sets = list();
    sets.conditioning[1].conditioning_type = config::ConditioningType::controlnet;
    strata::comm::SelfComm comm;
    PictureSource<TwoPictures, strata::Local> source{comm, sets, std::make_shared<const TwoPictures>(), options};
    source.prepare();
    EXPECT_EQ(source.report().latents.made, 8);
}

TEST_F(Conditioning, ReplacedWhileARunGoesOnTheyAreNeverMixedUp) {
    options.cache_memory_bytes = 0;
    options.prefetch_batches = 1;
    const auto source = prepared(list());
    for (const auto& entry : fs::recursive_directory_iterator{folder / "vae"})
        if (entry.is_regular_file()) fs::remove(entry.path());
    for (int i = 0; i < 8; ++i) put("hints/p" + std::to_string(i) + ".png", slope(192, 128, 10 * i + 100));
    source->seek(0);
    for (int b = 0; b < 2; ++b) expect_framed_alike(source->next(), 100);
    EXPECT_EQ(made(), 0) << "what was made is known by what the files hold now";
}

TEST_F(Conditioning, ARunThatResumesSeesTheSame) {
    auto sets = list();
    sets.images[0].vae_cache_ondemand = true;
    const auto source = prepared(sets);
    std::vector<PairRecipe::Batch> all;
    for (int b = 0; b < 6; ++b) all.push_back(source->next());
    const auto again = prepared(sets);
    again->seek(3);
    for (std::size_t b = 3; b < 6; ++b) {
        const auto batch = again->next();
        EXPECT_EQ(batch.samples, all[b].samples);
        EXPECT_TRUE(batch.hint_BCHW.equal(all[b].hint_BCHW));
        EXPECT_TRUE(batch.mask_B1HW.equal(all[b].mask_B1HW));
    }
}

TEST_F(Conditioning, WhatACheckpointComparesKnowsThem) {
    const auto before = prepared(list())->identity();
    EXPECT_EQ(prepared(list())->identity(), before);
    put("hints/p4.png", slope(192, 128, 200));
    EXPECT_NE(prepared(list())->identity(), before);
}

TEST_F(Conditioning, ABrokenOneLeavesItsSampleOutAndIsNamed) {
    auto cut = half_mask(48, 32);
    cut.resize(cut.size() / 2);
    put("masks/p5.png", cut);
    options.train_batch_size = 7;
    const auto report = prepared(list())->report();
    EXPECT_EQ(report.used, 7);
    ASSERT_EQ(report.skipped.size(), 1U);
    EXPECT_TRUE(report.skipped[0].place.ends_with("photos/p5.png")) << report.skipped[0].place;
    EXPECT_NE(report.skipped[0].detail.find("masks/p5.png"), std::string::npos) << report.skipped[0].detail;
}

TEST_F(Conditioning, DataSetsAndModelsThatDoNotFitAreOneErrorEach) {
    static strata::comm::SelfComm comm;
    const auto refused = [&](const config::DatasetList& sets) { return thrown_by([&] { (void)prepared(sets); }); };
    auto sets = list();
    sets.images[0].conditioning_data.clear();
    auto thrown = refused(sets);
    EXPECT_EQ(thrown.code, Errc::bad_conditioning);
    EXPECT_TRUE(
        thrown.says("data set 'photos' has no conditioning_data, and the model takes a picture and a mask with "
                    "each picture"))
        << thrown.message;
    sets.images[0].conditioning_data = {"masks", "hints"};
    thrown = refused(sets);
    EXPECT_EQ(thrown.code, Errc::bad_conditioning);
    EXPECT_TRUE(thrown.says("'masks', 'hints', which is a mask and a picture for each picture")) << thrown.message;
    sets.images[0].conditioning_data = {"hints"};
    EXPECT_EQ(refused(sets).code, Errc::bad_conditioning);
    using Flux = strata::models::FluxRecipe<>;
    thrown = thrown_by([&] {
        PictureSource<Flux, strata::Local> source{comm, list(), std::make_shared<const Flux>(), options};
    });
    EXPECT_EQ(thrown.code, Errc::bad_conditioning);
    EXPECT_TRUE(thrown.says("and the model takes no conditioning pictures")) << thrown.message;
    sets.images[0].conditioning_data = {"gone"};
    EXPECT_EQ(refused(sets).code, Errc::bad_reference);
}

TEST_F(Conditioning, ARecipeConformsAndTheKitSeesWhatIsLeftOut) {
    EXPECT_EQ(strata::testing::recipe_failures(PairRecipe{}), std::vector<std::string>{});
    struct Forgets : PairRecipe {
        std::vector<NamedTensors> encode_pictures(PictureEncoders& none, const PictureBatch& batch) const {
            auto entries = PairRecipe::encode_pictures(none, batch);
            for (NamedTensors& entry : entries) entry.at("mask") = torch::zeros_like(entry.at("mask"));
            return entries;
        }
    };
    const auto failures = strata::testing::recipe_failures(Forgets{});
    ASSERT_FALSE(failures.empty());
    EXPECT_NE(failures[0].find("conditioning picture 1 has no part in what is encoded"), std::string::npos)
        << failures[0];
}

/// A conditioning() of another type is no recipe; one without stays one.
struct WrongKind : PairRecipe {
    int conditioning() const { return 2; }
};
static_assert(!Recipe<WrongKind> && !strata::rule::RecipeSaysWhatIsCached<WrongKind>::holds);
static_assert(strata::rule::RecipeSaysWhatIsCached<PairRecipe>::holds && !HasConditioning<archetype::Recipe>);

}  // namespace
