// Recipes of several shapes: what is cached, when encoders are there, and what becomes a batch.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/small_flux.hpp>
#include <strata/storage/local.hpp>
#include <strata/storage/safetensors.hpp>
#include <strata/testing/recipe_conformance.hpp>

#include "../../../examples/pixel_recipe.hpp"
#include "../../support/picture_source.hpp"
#include "../../support/sdxl_recipe.hpp"

namespace {

using namespace strata::data;
using strata::Errc;
using strata::testing::recipe_failures;
using strata_test::SdxlRecipe;
using strata_test::thrown_by;
using Failures = std::vector<std::string>;
using Fixture = strata_test::PictureSource;
using Sdxl = PictureSource<SdxlRecipe, strata::Local>;

struct SdxlPictures : Fixture {
    SdxlRecipe recipe;
    [[nodiscard]] std::unique_ptr<Sdxl> make(const strata::config::DatasetList& list) const {
        static strata::comm::SelfComm comm;
        return std::make_unique<Sdxl>(comm, list, std::make_shared<const SdxlRecipe>(recipe), options);
    }
    [[nodiscard]] std::unique_ptr<Sdxl> prepared(const strata::config::DatasetList& list) const {
        auto source = make(list);
        source->prepare();
        return source;
    }
};

TEST(Recipe, TheRecipesOfTheHouseAndOfAUsersOwnConform) {
    EXPECT_EQ(recipe_failures(strata::models::FluxRecipe<>{}), Failures{});
    EXPECT_EQ(recipe_failures(strata_test::FakeRecipe{}), Failures{});
    EXPECT_EQ(recipe_failures(SdxlRecipe{}), Failures{});
}

//! [conformance]
TEST(Recipe, ARecipeOfAUsersOwnConforms) { EXPECT_EQ(recipe_failures(PixelRecipe{}), Failures{}); }
//! [conformance]

/// Samples, captions and embeddings as they were when SmallFlux's batch was the only one there was: numbers of the program before
/// recipes; of latents and losses those of the first program whose codec overlaps. Orders are exact; sums and losses have room for
/// another libm and another libtorch.
TEST(Recipe, SmallFluxIsFedWhatItWasFedBeforeRecipes) {
    Fixture pictures;
    pictures.options.caption_dropout_probability = 0.25;
    static strata::comm::SelfComm comm;
    using strata::models::SmallFlux;
    PictureSource<recipe_of_t<SmallFlux>, strata::Local> source{
        comm, pictures.list(), std::make_shared<const SmallFlux::Recipe>(), pictures.options};
    source.prepare();
    torch::manual_seed(3);
    SmallFlux model{{.heads = 1, .double_blocks = 1, .single_blocks = 1}};
    const at::NoGradGuard no_gradients;
    for (at::Tensor& parameter : model.parameters()) parameter.add_(at::randn_like(parameter) * 0.05);
    const std::map<int, double> losses{
        {0, 2.8731639385223389}, {6, 2.6828055381774902}, {12, 2.7410838603973389}, {17, 4.1290597915649414}};
    std::uint64_t order = 0;
    double latents = 0;
    double text = 0;
    const auto sum = [](const at::Tensor& tensor) { return tensor.to(at::kDouble).abs().sum().item<double>(); };
    for (int i = 0; i < 18; ++i) {
        const SmallFlux::Batch batch = source.next();
        for (std::size_t k = 0; k < batch.samples.size(); ++k) {
            const int number = std::stoi(std::filesystem::path{batch.samples[k]}.stem().string().substr(1));
            order = order * 1000003 + static_cast<std::uint64_t>(number) * 101 + batch.captions[k].size();
        }
        latents += sum(batch.latents_BCHW);
        text += sum(batch.text_BTE) + sum(batch.pooled_BE);
        torch::manual_seed(static_cast<std::uint64_t>(100 + i));
        const double loss = model.loss(batch).item<double>();
        if (losses.contains(i)) {
            EXPECT_NEAR(loss, losses.at(i), 1e-5 * loss) << i;
        }
    }
    EXPECT_EQ(order, 16693337761982491480ULL);
    EXPECT_NEAR(latents, 37553.3754103, 1e-3);
    EXPECT_NEAR(text, 15128.1365186, 1e-3);
}

/// A recipe that breaks one promise.
template <int which>
struct Wrong : SdxlRecipe {
    std::string picture_id() const {
        static int calls = 0;
        return which == 0 ? std::to_string(++calls) : "id";
    }
    std::vector<NamedTensors> encode_pictures(strata_test::Loaded& vae, const PictureBatch& batch) const {
        auto entries = SdxlRecipe::encode_pictures(vae, batch);
        for (NamedTensors& entry : entries) {
            at::Tensor& moments = entry.at("moments");
            if (which == 1) moments = moments.to(torch::kFloat);
            if (which == 2) moments = moments + torch::randn_like(moments);
            if (which == 3) moments = moments * static_cast<double>(batch.geometry.size());
        }
        if (which == 4) entries.resize(1);
        return entries;
    }
    Batch collate(std::span<const Example> examples) const {
        if (which == 5) {
            std::vector<Example> all;
            for (const Example& one : examples)
                all.push_back({one.picture, one.caption, one.geometry, one.text, false, one.name, one.random, false});
            return SdxlRecipe::collate(all);
        }
        Batch batch = SdxlRecipe::collate(examples);
        if (which == 6) batch.latents_BCHW = batch.latents_BCHW + torch::randn_like(batch.latents_BCHW);
        if (which == 7) examples[0].picture.at("moments").mul_(2);
        return batch;
    }
};

TEST(Recipe, TheKitNamesEveryBrokenPromise) {
    const auto says = [](const Failures& failures, const std::string& what) {
        for (const std::string& one : failures)
            if (one.find(what) != std::string::npos) return true;
        return false;
    };
    EXPECT_TRUE(says(recipe_failures(Wrong<0>{}), "picture_id() is another one at every call"));
    EXPECT_TRUE(says(recipe_failures(Wrong<1>{}), "'moments' is Float (6, 8, 8), and not BFloat16 (6, 8, 8)"));
    EXPECT_TRUE(says(recipe_failures(Wrong<2>{}), "the same input twice gives other numbers"));
    EXPECT_TRUE(says(recipe_failures(Wrong<3>{}), "depends on what else is encoded with it"));
    EXPECT_TRUE(says(recipe_failures(Wrong<4>{}), "1 entries come back for 3"));
    EXPECT_TRUE(says(recipe_failures(Wrong<5>{}), "passes over Example::is_dropped"));
    EXPECT_TRUE(says(recipe_failures(Wrong<6>{}), "the same examples twice give other batches"));
    EXPECT_TRUE(says(recipe_failures(Wrong<7>{}), "collate() changes what is cached"));
}

TEST(Recipe, SizesCropsPooledCaptionsAndTwoEncodersReachTheBatch) {
    SdxlPictures pictures;
    auto list = pictures.list();
    list.images[0].crop = true;
    list.images[0].crop_style = strata::config::CropStyle::corner;
    list.images[0].crop_aspect = strata::config::CropAspect::square;
    const auto source = pictures.prepared(list);
    bool has_met_wide = false;
    for (std::int64_t i = 0; i < source->micro_batches_per_epoch(); ++i) {
        const SdxlRecipe::Batch batch = source->next();
        ASSERT_EQ(batch.latents_BCHW.sizes(), (std::vector<std::int64_t>{4, 3, 8, 8}));
        ASSERT_EQ(batch.tokens_BTE.sizes(), (std::vector<std::int64_t>{4, 7, 10}));
        ASSERT_EQ(batch.time_ids_B6.sizes(), (std::vector<std::int64_t>{4, 6}));
        for (std::int64_t k = 0; k < 4; ++k) {
            const int number =
                std::stoi(std::filesystem::path{batch.samples[static_cast<std::size_t>(k)]}.stem().string().substr(1));
            const bool wide = number >= 24;  // 100 x 64, of which the upper left is kept
            has_met_wide |= wide;
            const auto ids = batch.time_ids_B6[k];
            EXPECT_TRUE(ids.equal(torch::tensor({64.0, wide ? 100.0 : 64.0, 0.0, 0.0, 64.0, 64.0}, torch::kFloat)))
                << ids;
            const float letters = static_cast<float>(number + 1);
            EXPECT_EQ(batch.tokens_BTE[k][0][0].item<float>(), letters);
            EXPECT_EQ(batch.tokens_BTE[k][6][9].item<float>(), -letters);
            EXPECT_NEAR(batch.pooled_BE[k][5].item<float>(), letters + 0.5F, 0.25F);  // bfloat16
            const float red = static_cast<float>(number * 7 % 256) / 127.5F - 1;
            EXPECT_NEAR(batch.latents_BCHW[k][0].mean().item<float>(), red, 0.1F);  // deviation exp(-2), of 64
        }
    }
    EXPECT_TRUE(has_met_wide);
}

TEST(Recipe, EachVisitDrawsItsLatentsAndARunThatResumesTheSame) {
    const SdxlPictures pictures;
    const auto source = pictures.prepared(pictures.list());
    std::map<std::string, std::vector<at::Tensor>> seen;
    std::vector<SdxlRecipe::Batch> all;
    for (int i = 0; i < 27; ++i) {
        all.push_back(source->next());
        for (std::int64_t k = 0; k < 4; ++k)
            seen[all.back().samples[static_cast<std::size_t>(k)]].push_back(all.back().latents_BCHW[k]);
    }
    ASSERT_EQ(seen.size(), 36U);
    for (const auto& [sample, visits] : seen) {
        ASSERT_EQ(visits.size(), 3U);
        EXPECT_FALSE(visits[0].equal(visits[1]) || visits[1].equal(visits[2])) << sample;
    }
    const auto again = pictures.prepared(pictures.list());
    again->seek(17);
    EXPECT_TRUE(again->next().latents_BCHW.equal(all[17].latents_BCHW));
}

TEST(Recipe, DroppedCaptionsBecomeWhatTheRecipeSays) {
    SdxlPictures pictures;
    pictures.options.caption_dropout_probability = 0.5;
    const auto source = pictures.prepared(pictures.list());
    EXPECT_EQ(source->report().texts.made, 36);  // no text stands in, so none is embedded for that
    int dropped = 0;
    for (int i = 0; i < 36; ++i) {
        const SdxlRecipe::Batch batch = source->next();
        for (std::int64_t k = 0; k < 4; ++k) {
            const bool is_zero = batch.tokens_BTE[k].eq(0).all().item<bool>();
            EXPECT_EQ(is_zero, batch.pooled_BE[k].eq(0).all().item<bool>());
            dropped += is_zero ? 1 : 0;
        }
    }
    EXPECT_NEAR(dropped, 72, 5 * 6);
}

TEST(Recipe, EntriesAreKeptInTheirOwnTypes) {
    const SdxlPictures pictures;
    (void)pictures.prepared(pictures.list());
    int entries = 0;
    for (const std::string folder : {"vae", "text"})
        for (const auto& file : std::filesystem::recursive_directory_iterator{pictures.folder.path() / folder}) {
            if (!file.is_regular_file()) continue;
            ++entries;
            const auto bytes = strata::storage::read_file(file.path());
            for (const auto& tensor : strata::storage::parse_safetensors(bytes).tensors)
                EXPECT_EQ(tensor.dtype, strata::storage::Dtype::bf16) << tensor.name;
        }
    EXPECT_EQ(entries, 72);
}

TEST(Recipe, EncodersAreLoadedOnceGoneBehindPrepareAndNotLoadedForFullCaches) {
    SdxlPictures pictures;
    pictures.options.vae_batch_size = 5;
    pictures.options.text_encoder_batch_size = 8;
    const auto source = pictures.prepared(pictures.list());
    for (const auto& counts : {pictures.recipe.pictures, pictures.recipe.captions}) {
        EXPECT_EQ(counts->loaded, 1);
        EXPECT_EQ(counts->alive, 0);
        EXPECT_EQ(counts->encoded, 36);
        EXPECT_EQ(counts->most_inside, 1);
    }
    EXPECT_EQ(pictures.recipe.pictures->largest, 5);
    EXPECT_EQ(pictures.recipe.captions->largest, 8);
    (void)source->next();
    const auto again = pictures.prepared(pictures.list());
    for (int i = 0; i < 9; ++i) (void)again->next();
    EXPECT_EQ(pictures.recipe.pictures->loaded, 1);
    EXPECT_EQ(pictures.recipe.captions->loaded, 1);
}

/// A recipe that notes where its encoders are loaded and where pictures come to them. The device is one without values,
/// which is there in every build.
struct PlacedRecipe : SdxlRecipe {
    std::shared_ptr<std::vector<at::Device>> seen = std::make_shared<std::vector<at::Device>>();
    strata_test::Loaded load_picture_encoders(at::Device device) const {
        seen->push_back(device);
        return SdxlRecipe::load_picture_encoders(device);
    }
    strata_test::Loaded load_caption_encoders(at::Device device) const {
        seen->push_back(device);
        return SdxlRecipe::load_caption_encoders(device);
    }
    std::vector<NamedTensors> encode_pictures(strata_test::Loaded&, const PictureBatch& batch) const {
        seen->push_back(batch.pixels_B3HW.device());
        const auto& size = batch.geometry.front().frame.target;
        return std::vector<NamedTensors>(
            batch.geometry.size(), {{"moments", torch::zeros({6, size.height / 8, size.width / 8}, torch::kBFloat16)}});
    }
};

TEST(Recipe, EncodersComputeWhereTheOptionsSay) {
    Fixture fixture;
    strata::comm::SelfComm comm;
    for (const at::Device device : {at::Device{at::kCPU}, at::Device{at::kMeta}}) {
        std::filesystem::remove_all(fixture.folder.path() / "vae");
        std::filesystem::remove_all(fixture.folder.path() / "text");
        fixture.options.device = device;
        const PlacedRecipe recipe;
        PictureSource<PlacedRecipe, strata::Local> source{
            comm, fixture.list(), std::make_shared<const PlacedRecipe>(recipe), fixture.options};
        source.prepare();
        EXPECT_GT(recipe.seen->size(), 2U);
        for (const at::Device& one : *recipe.seen) EXPECT_EQ(one, device);
        EXPECT_EQ(source.next().latents_BCHW.device(), at::Device{at::kCPU}) << "entries are in host memory";
    }
}

TEST(Recipe, EncodersStayWhereDataSetsNeedThemWhileTraining) {
    SdxlPictures pictures;
    auto list = pictures.list();
    list.images[0].vae_cache_ondemand = true;
    list.images[0].skip_file_discovery.text = true;
    {
        const auto source = pictures.prepared(list);
        EXPECT_EQ(pictures.recipe.pictures->loaded, 0);
        for (int i = 0; i < 9; ++i) (void)source->next();
        EXPECT_EQ(pictures.recipe.pictures->loaded, 1);
        EXPECT_EQ(pictures.recipe.pictures->alive, 1);
        EXPECT_EQ(pictures.recipe.pictures->most_inside, 1);
    }
    EXPECT_EQ(pictures.recipe.pictures->alive, 0);
    EXPECT_EQ(pictures.recipe.captions->alive, 0);
}

TEST(Recipe, ADamagedEntryLoadsTheEncodersAndLetsThemGo) {
    SdxlPictures pictures;
    pictures.options.cache_memory_bytes = 0;
    pictures.options.prefetch_batches = 1;
    const auto source = pictures.prepared(pictures.list());
    strata_test::write_file(pictures.latent_files().front(), "garbage");
    for (int i = 0; i < 10; ++i) (void)source->next();
    EXPECT_EQ(source->report().latents.rebuilt.size(), 1U);
    EXPECT_EQ(pictures.recipe.pictures->loaded, 2);
    EXPECT_EQ(pictures.recipe.pictures->alive, 0);
}

TEST(Recipe, AnotherRecipeOverTheSameCachesMakesItsOwnEntries) {
    SdxlPictures pictures;
    (void)pictures.prepared(pictures.list());
    pictures.recipe.name = "another";
    const auto report = pictures.prepared(pictures.list())->report();
    EXPECT_EQ(report.latents.made, 36);
    EXPECT_EQ(report.texts.made, 36);
    EXPECT_EQ(pictures.open()->report().latents.made, 36);
}

TEST(Recipe, NothingIsReadBeforePrepareAndASecondCallDoesNothing) {
    const SdxlPictures pictures;
    const auto source = pictures.make(pictures.list());
    EXPECT_FALSE(source->is_prepared());
    EXPECT_FALSE(std::filesystem::exists(pictures.folder.path() / "vae"));
    for (const auto& ask : std::vector<std::function<void()>>{[&] { (void)source->next(); },
                                                              [&] { (void)source->micro_batches_per_epoch(); },
                                                              [&] { (void)source->micro_batches_of(1); }}) {
        const auto error = thrown_by(ask);
        EXPECT_EQ(error.code, Errc::unprepared);
        EXPECT_TRUE(error.says("prepare()")) << error.message;
    }
    source->prepare();
    EXPECT_TRUE(source->is_prepared());
    EXPECT_EQ(source->report().latents.made, 36);
    source->prepare();
    EXPECT_EQ(pictures.recipe.pictures->loaded, 1);
    EXPECT_EQ(source->micro_batches_per_epoch(), 9);
}

TEST(Recipe, WhatARecipeEncodesOtherwiseThanItSaysIsNamed) {
    const Fixture pictures;
    static strata::comm::SelfComm comm;
    const auto error = thrown_by([&] {
        PictureSource<Wrong<1>, strata::Local> source{comm, pictures.list(), std::make_shared<const Wrong<1>>(),
                                                      pictures.options};
        source.prepare();
    });
    EXPECT_EQ(error.code, Errc::bad_recipe);
    EXPECT_TRUE(error.says("encode_pictures() returned, 'moments' is Float")) << error.message;
    const auto few = thrown_by([&] {
        PictureSource<Wrong<4>, strata::Local> source{comm, pictures.list(), std::make_shared<const Wrong<4>>(),
                                                      pictures.options};
        source.prepare();
    });
    EXPECT_EQ(few.code, Errc::bad_recipe);
    EXPECT_TRUE(few.says("returned 1 entries of 4")) << few.message;
}

/// One picture that cannot be encoded among others of its batch.
struct Picky : SdxlRecipe {
    std::vector<NamedTensors> encode_pictures(strata_test::Loaded& vae, const PictureBatch& batch) const {
        for (std::int64_t i = 0; i < batch.pixels_B3HW.size(0); ++i) {
            const float red = batch.pixels_B3HW[i][0].mean().item<float>();
            if (std::abs(red - (7 * 7 / 127.5F - 1)) < 1e-3F) throw std::runtime_error{"I do not like number 7\nhere"};
        }
        return SdxlRecipe::encode_pictures(vae, batch);
    }
};

TEST(Recipe, APictureThatCannotBeEncodedIsLeftOutAndItsBatchIsNot) {
    const Fixture pictures;
    static strata::comm::SelfComm comm;
    PictureSource<Picky, strata::Local> source{comm, pictures.list(), std::make_shared<const Picky>(),
                                               pictures.options};
    source.prepare();
    const auto report = source.report();
    EXPECT_EQ(report.latents.made, 35);
    ASSERT_EQ(report.skipped.size(), 1U);
    EXPECT_TRUE(report.skipped[0].place.ends_with("p07.png"));
    EXPECT_NE(report.skipped[0].detail.find("cannot be encoded: I do not like number 7"), std::string::npos);
}

}  // namespace
