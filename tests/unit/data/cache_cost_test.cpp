// What is foreseen is compared with what PictureSource writes, byte by byte of its files' sizes.

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include <strata/comm/self_comm.hpp>
#include <strata/data/entry_shapes.hpp>
#include <strata/data/picture_source.hpp>
#include <strata/datasets/cache_cost.hpp>
#include <strata/datasets/cache_identity.hpp>
#include <strata/datasets/statistics.hpp>
#include <strata/storage/atomic_file.hpp>
#include <strata/storage/local.hpp>

#include "../../support/fake_encoders.hpp"
#include "../../support/made_files.hpp"
#include "../../support/pictures.hpp"
#include "../../support/prepared.hpp"
#include "../../support/sdxl_recipe.hpp"
#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::data;
using namespace strata::datasets;
using namespace strata::pictures;
using strata_test::LengthText;
using strata_test::MeanCodec;
using strata_test::prepared;
namespace config = strata::config;
namespace fs = std::filesystem;
using Source = PictureSource<strata_test::FakeRecipe, strata::Local>;

const EntryShapes recipe =
    entry_shapes(strata_test::FakeRecipe{MeanCodec{}, LengthText{}},
                 {{"pooled", strata::storage::Dtype::f32, {2}}, {"tokens", strata::storage::Dtype::f32, {4, 2}}});

/// Without those that are being written: what is asked for ahead may make an entry a second time.
CacheCost files_below(const fs::path& folder) {
    CacheCost cost;
    for (const auto& entry : fs::recursive_directory_iterator{folder})
        if (entry.is_regular_file() && !strata::storage::is_temporary_name(entry.path().filename().string()))
            cost += {1, entry.file_size()};
    return cost;
}

void expect_equal(const CacheCost& foreseen, const CacheCost& written) {
    EXPECT_EQ(foreseen.entries, written.entries);
    EXPECT_EQ(foreseen.bytes, written.bytes);
}

/// 30 pictures of many ratios, with names and captions that JSON has to escape.
struct Fixture {
    strata_test::TemporaryFolder folder;
    config::DatasetList list;
    SourceOptions options;

    Fixture() {
        const strata::Local store{folder.path() / "data"};
        for (int i = 0; i < 30; ++i) {
            const std::string stem =
                "a \"folder\"\\ü/" + std::string(static_cast<std::size_t>(i), 'n') + std::to_string(i);
            store.put(stem + ".png", strata_test::plain_png(60 + 7 * i, 70 + (i * i) % 90, 1, 2, 3));
            store.put(stem + ".txt", strata_test::bytes_of("a \"caption\" \\ größer " +
                                                           std::string(static_cast<std::size_t>(i % 9), 'x')));
        }
        config::ImageDataset images;
        images.id = "pictures";
        images.instance_data_dir = folder.path() / "data";
        images.cache_dir_vae = folder.path() / "vae";
        images.text_embeds = "text";
        images.resolution = 64;
        list.images.push_back(images);
        config::TextEmbeds embeds;
        embeds.id = "text";
        embeds.cache_dir = folder.path() / "text";
        list.text_embeds.push_back(embeds);
        options.train_batch_size = 1;
        options.aspect_bucket_alignment = 16;
    }
    [[nodiscard]] std::unique_ptr<Source> open() const {
        static strata::comm::SelfComm comm;  // outlives every source
        return prepared<Source>(comm, list, std::make_shared<MeanCodec>(), std::make_shared<LengthText>(), options);
    }
    [[nodiscard]] CacheCost foreseen_latents(const Collection& collection) const {
        const PictureSet& set = collection.sets()[0];
        CacheCost cost;
        for (const Bucket& bucket : collection.buckets()) cost += latent_cost(set, bucket, recipe);
        return cost;
    }
    [[nodiscard]] CacheCost foreseen_texts(const Collection& collection) const {
        const auto captions = caption_statistics(collection.sets()[0], options.seed).different;
        std::set<std::string> texts(captions.begin(), captions.end());
        texts.insert("");
        return text_cost(texts, recipe);
    }
};

TEST(CacheCost, IsExactlyWhatTheCachesTake) {
    const Fixture fixture;
    const auto source = fixture.open();
    EXPECT_GT(source->collection().buckets().size(), 2U);
    const CacheCost latents = fixture.foreseen_latents(source->collection());
    EXPECT_EQ(latents.entries, 30);
    expect_equal(latents, files_below(fixture.folder.path() / "vae"));
    const CacheCost texts = fixture.foreseen_texts(source->collection());
    EXPECT_EQ(texts.entries, 10);
    expect_equal(texts, files_below(fixture.folder.path() / "text"));
}

TEST(CacheCost, PicturesThatHoldTheSameAreOneEntryOnceItIsKnown) {
    const Fixture fixture;
    const fs::path data = fixture.folder.path() / "data";
    for (const auto& entry : fs::recursive_directory_iterator{data})
        if (entry.path().extension() == ".png") {
            fs::copy_file(entry.path(), data / "copy.png");
            break;
        }
    strata::Local{data}.put("copy.txt", strata_test::bytes_of("a copy"));
    const auto source = fixture.open();
    const CacheCost latents = fixture.foreseen_latents(source->collection());
    EXPECT_EQ(latents.entries, 30);
    expect_equal(latents, files_below(fixture.folder.path() / "vae"));

    Collection unread{fixture.options.buckets()};
    Discovered found;
    found.samples = source->collection().sets()[0].samples;
    for (Sample& sample : found.samples) sample.content = {};
    unread.add(fixture.list.images[0], std::move(found));
    EXPECT_EQ(fixture.foreseen_latents(unread).entries, 31);
}

/// Any tensors in any types: SDXL's shape, all of it bfloat16.
TEST(CacheCost, IsThatOfTheRecipesOwnTensors) {
    const Fixture fixture;
    strata::comm::SelfComm comm;
    const auto sdxl = std::make_shared<const strata_test::SdxlRecipe>();
    PictureSource<strata_test::SdxlRecipe, strata::Local> source{comm, fixture.list, sdxl, fixture.options};
    source.prepare();
    const EntryShapes shapes = entry_shapes(*sdxl);
    CacheCost cost;
    for (const Bucket& bucket : source.collection().buckets())
        cost += latent_cost(source.collection().sets()[0], bucket, shapes);
    expect_equal(cost, files_below(fixture.folder.path() / "vae"));
    const auto captions = caption_statistics(source.collection().sets()[0], fixture.options.seed).different;
    std::set<std::string> texts(captions.begin(), captions.end());
    if (shapes.dropped_caption) texts.insert(*shapes.dropped_caption);
    expect_equal(text_cost(texts, shapes), files_below(fixture.folder.path() / "text"));
    EXPECT_EQ(strata_test::thrown_by([] {
                  (void)outlines_of({{"masks", at::kFloat, {TensorSpec::any, 2}}});
              }).code,
              strata::Errc::bad_recipe);
}

TEST(CacheCost, OnDemandIsTheSameInTheEndAndNoneIsNothing) {
    Fixture fixture;
    const CacheCost ahead = fixture.foreseen_latents(fixture.open()->collection());
    fs::remove_all(fixture.folder.path() / "vae");
    fixture.list.images[0].vae_cache_ondemand = true;
    const auto source = fixture.open();
    expect_equal(fixture.foreseen_latents(source->collection()), ahead);
    for (std::int64_t i = 0; i < source->micro_batches_per_epoch(); ++i) (void)source->next();
    expect_equal(ahead, files_below(fixture.folder.path() / "vae"));

    fixture.list.images[0].vae_cache_ondemand = false;
    fixture.list.images[0].vae_cache_disable = true;
    expect_equal(fixture.foreseen_latents(fixture.open()->collection()), {});
}

/// 64 pictures in one bucket, with two sizes that each batch draws one of, by 1/4 and 3/4; three turns a round.
Collection drawn_collection(double probability) {
    config::ImageDataset settings;
    settings.id = "a";
    settings.resolution = 64;
    settings.crop = true;
    settings.crop_aspect = config::CropAspect::random;
    settings.crop_aspect_buckets = {{1, 0.25}, {2, 0.75}};
    settings.vae_cache_clear_each_epoch = true;
    settings.repeats = 2;
    settings.probability = probability;
    Discovered found;
    for (int i = 0; i < 64; ++i) {
        Sample& one = found.samples.emplace_back();
        one.key = std::to_string(100 + i);
        one.version = "1";
        one.size = {128, 128};
        one.caption = "a caption";
    }
    Collection collection{{16, config::BucketMode::nearest, 2}};
    collection.add(settings, std::move(found));
    return collection;
}

/// A size is drawn once at least in three turns with 1 - (1 - w)^3.
TEST(CacheCost, EachEpochIsTheMeanOfAnEpoch) {
    const Collection collection = drawn_collection(1);
    ASSERT_EQ(collection.buckets().size(), 1U);
    const Bucket& bucket = collection.buckets()[0];
    ASSERT_EQ(bucket.shapes.size(), 2U);
    const PictureSet& set = collection.sets()[0];
    double entries = 0;
    double bytes = 0;
    for (const Shape& shape : bucket.shapes) {
        const double share = shape.weight == 0.25 ? 37.0 / 64 : 63.0 / 64;
        const std::string identity = latent_identity("mean", {}, set.framer.frame({128, 128}, shape.size), 0);
        entries += 64 * share;
        bytes += 64 * share * static_cast<double>(entry_bytes(recipe.picture_tensors(shape.size), identity));
    }
    const CacheCost cost = latent_cost(set, bucket, recipe);
    EXPECT_EQ(cost.entries, 100);
    EXPECT_EQ(entries, 100);
    EXPECT_EQ(cost.bytes, static_cast<std::uint64_t>(bytes));
}

TEST(CacheCost, EachEpochIsWhatThePlanShowsOnAverage) {
    for (const double probability : {1.0, 0.5, 0.125}) {
        Collection collection = drawn_collection(probability);
        collection.arrange({4, 1, 1}, 42, false);
        const SamplePlan& plan = collection.plan();
        const Bucket& bucket = collection.buckets()[0];
        constexpr std::int64_t epochs = 400;
        std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> entries;  // epoch, sample, width
        for (std::int64_t position = 0; position < plan.batches_before(epochs); ++position) {
            const GlobalBatch batch = plan.batch(position);
            for (const Visit& visit : batch.visits)
                entries.emplace(batch.epoch, visit.sample, drawn(bucket.shapes, batch.random).width);
        }
        const double mean = static_cast<double>(entries.size()) / static_cast<double>(epochs);
        const CacheCost cost = latent_cost(collection.sets()[0], bucket, recipe);
        EXPECT_NEAR(static_cast<double>(cost.entries), mean, 0.02 * mean + 0.5) << "probability " << probability;
    }
}

}  // namespace
