#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/bucket_table.hpp>
#include <strata/pictures/buckets.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using namespace strata::pictures;
using strata::Errc;
using strata::config::ResolutionType;
using strata_test::thrown_by;

std::vector<BucketRule> rules() {
    std::vector<BucketRule> all;
    for (const double resolution : {128.0, 512.0, 1000.0, 1024.0})
        for (const ResolutionType type : {ResolutionType::pixel, ResolutionType::pixel_area})
            for (const std::int64_t alignment : {8, 24, 32, 64})
                all.push_back({resolution, type, alignment, 0.25, 4, false});
    for (const double megapixels : {0.05, 0.25, 1.0, 4.0})
        all.push_back({megapixels, ResolutionType::area, 64, 0.25, 4, false});
    return all;
}

TEST(Buckets, AreAlignedSymmetricSortedAndContainTheSquare) {
    for (const BucketRule& rule : rules()) {
        const auto sizes = bucket_list(rule);
        int squares = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            EXPECT_EQ(sizes[i].width % rule.alignment, 0);
            EXPECT_EQ(sizes[i].height % rule.alignment, 0);
            EXPECT_GE(sizes[i].width, rule.alignment);
            squares += sizes[i].width == sizes[i].height ? 1 : 0;
            EXPECT_EQ(sizes[i], (PictureSize{sizes[sizes.size() - 1 - i].height, sizes[sizes.size() - 1 - i].width}));
        }
        EXPECT_EQ(squares, 1);
    }
}

TEST(Buckets, StayNearTheAreaThatWasAskedFor) {
    for (const PictureSize& size : bucket_list({1024, ResolutionType::pixel_area, 64, 0.25, 4, false})) {
        const double share = static_cast<double>(size.width * size.height) / (1024.0 * 1024.0);
        EXPECT_GE(share, 0.8);
        EXPECT_LE(share, 1.25);
    }
}

TEST(Buckets, TheSmallListIsWhatTheRuleSays) {
    const auto sizes = bucket_list({128, ResolutionType::pixel_area, 32, 1.0 / 3, 3, false});
    EXPECT_EQ(sizes, (std::vector<PictureSize>{{96, 192}, {96, 160}, {128, 128}, {160, 96}, {192, 96}}));
    EXPECT_EQ(bucket_list({128, ResolutionType::pixel, 64, 0.5, 2, false}),
              (std::vector<PictureSize>{{128, 256}, {128, 192}, {128, 128}, {192, 128}, {256, 128}}));
    EXPECT_EQ(bucket_list({128, ResolutionType::pixel_area, 32, 0.25, 4, true}),
              (std::vector<PictureSize>{{128, 128}}));
}

TEST(Buckets, AMirroredPictureGetsTheMirroredBucket) {
    for (const BucketRule& rule : rules()) {
        const auto sizes = bucket_list(rule);
        for (std::int64_t width = 50; width < 700; width += 37) {
            for (std::int64_t height = 50; height < 700; height += 41) {
                const PictureSize& upright = sizes[nearest_bucket(sizes, {width, height})];
                const PictureSize& turned = sizes[nearest_bucket(sizes, {height, width})];
                ASSERT_EQ(upright.width, turned.height);
                ASSERT_EQ(upright.height, turned.width);
            }
        }
    }
}

TEST(Buckets, NoOtherBucketIsNearerInRatio) {
    const auto sizes = bucket_list({1024, ResolutionType::pixel_area, 64, 0.25, 4, false});
    const auto log_ratio = [](const PictureSize& s) {
        return std::log(static_cast<double>(s.width) / static_cast<double>(s.height));
    };
    for (std::int64_t width = 100; width < 4000; width += 97) {
        const PictureSize picture{width, 1000};
        const double chosen = std::abs(log_ratio(sizes[nearest_bucket(sizes, picture)]) - log_ratio(picture));
        for (const PictureSize& size : sizes) EXPECT_LE(chosen, std::abs(log_ratio(size) - log_ratio(picture)) + 1e-12);
    }
    EXPECT_EQ(sizes[nearest_bucket(sizes, {700, 700})], (PictureSize{1024, 1024}));
}

TEST(Buckets, MinimumSizeIsInTheUnitOfTheResolution) {
    strata::config::ImageDataset dataset;
    const auto keeps = [&](ResolutionType type, double least, PictureSize size) {
        dataset.resolution_type = type;
        dataset.minimum_image_size = least;
        return is_large_enough(size, dataset);
    };
    EXPECT_FALSE(keeps(ResolutionType::pixel, 1024, {768, 1024}));
    EXPECT_FALSE(keeps(ResolutionType::pixel, 1024, {1280, 768}));
    EXPECT_TRUE(keeps(ResolutionType::pixel, 1024, {1760, 1024}));
    EXPECT_TRUE(keeps(ResolutionType::pixel_area, 1024, {1280, 960}));
    EXPECT_FALSE(keeps(ResolutionType::pixel_area, 1024, {1280, 768}));
    EXPECT_TRUE(keeps(ResolutionType::area, 1, {1000, 1000}));
    EXPECT_FALSE(keeps(ResolutionType::area, 1, {1000, 999}));
}

TEST(Buckets, AspectRatiosMayBothBeAboveOrBelowASquare) {
    const auto wide = bucket_list({128, ResolutionType::pixel_area, 32, 1.2, 3, false});
    EXPECT_EQ(wide, (std::vector<PictureSize>{{160, 96}, {192, 96}})) << "and no square";
    const auto tall = bucket_list({128, ResolutionType::pixel_area, 32, 1.0 / 3, 1 / 1.2, false});
    EXPECT_EQ(tall, (std::vector<PictureSize>{{96, 192}, {96, 160}}));
    // Of limits between two sizes the nearer one, whichever side it is on.
    const auto between = [](double low, double high) {
        return bucket_list({128, ResolutionType::pixel_area, 32, low, high, false});
    };
    EXPECT_EQ(between(1.7, 1.8), (std::vector<PictureSize>{{160, 96}}));
    EXPECT_EQ(between(1.9, 1.95), (std::vector<PictureSize>{{192, 96}}));
    EXPECT_EQ(between(1.05, 1.1), (std::vector<PictureSize>{{128, 128}}));
    EXPECT_EQ(between(0.52, 0.53), (std::vector<PictureSize>{{96, 192}}));
    EXPECT_EQ(between(2, 2), (std::vector<PictureSize>{{192, 96}}));
    EXPECT_EQ(bucket_list({128, ResolutionType::pixel_area, 32, 2, 3, true}), (std::vector<PictureSize>{{128, 128}}));
    // Long lists end, too.
    const auto panorama = bucket_list({1024, ResolutionType::pixel, 64, 6.05, 6.1, false});
    ASSERT_EQ(panorama.size(), 1U);
    EXPECT_EQ(panorama[0], (PictureSize{6208, 1024}));
}

std::vector<Bucket> two_buckets(std::int64_t repeats = 0) {
    strata::config::ImageDataset settings;
    settings.id = "stamps";
    settings.resolution = 128;
    settings.repeats = repeats;
    std::vector<PictureSize> pictures(10, PictureSize{100, 100});
    pictures.insert(pictures.end(), 3, PictureSize{200, 100});
    return fill_buckets(0, settings, Framer{settings, {.alignment = 32}}, pictures);
}

TEST(Buckets, EveryPictureIsInExactlyOneBucketAndEmptyOnesAreLeftOut) {
    const auto buckets = two_buckets();
    ASSERT_EQ(buckets.size(), 2U);
    EXPECT_EQ(buckets[0].samples.size(), 10U);
    EXPECT_EQ(buckets[1].samples, (std::vector<std::size_t>{10, 11, 12}));
    EXPECT_EQ(buckets[1].size, (PictureSize{192, 96}));
}

TEST(Buckets, PicturesThatAreDrawnFromTheSameSizesAreOneBucket) {
    strata::config::ImageDataset settings;
    settings.crop = true;
    settings.crop_aspect = strata::config::CropAspect::random;
    settings.crop_aspect_buckets = {{1.0, 0.5}, {0.75, 0.5}};
    const std::vector<PictureSize> pictures{{3000, 2000}, {1100, 1000}, {1024, 1024}, {900, 1200}, {2000, 2000}};
    const auto all = fill_buckets(0, settings, Framer{settings, {}}, pictures);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].shapes.size(), 2U);
    EXPECT_EQ(all[0].size, all[0].shapes[0].size);
    EXPECT_EQ(all[0].samples.size(), 5U);
    settings.max_upscale_threshold = 0;  // not every size for every picture any more
    const auto some = fill_buckets(0, settings, Framer{settings, {}}, pictures);
    ASSERT_EQ(some.size(), 3U);
    std::size_t count = 0;
    for (const Bucket& bucket : some) {
        count += bucket.samples.size();
        for (const std::size_t i : bucket.samples)
            EXPECT_EQ(bucket.shapes, (Framer{settings, {}}.shapes_of(pictures[i])));
    }
    EXPECT_EQ(count, 5U);
}

TEST(Buckets, TheOrderOfPicturesChangesNoBucket) {
    for (const auto mode : {strata::config::BucketMode::nearest, strata::config::BucketMode::simpletuner}) {
        strata::config::ImageDataset settings;
        const Framer framer{settings, {64, mode, 1}};
        std::vector<PictureSize> pictures;
        for (std::int64_t i = 0; i < 2000; ++i) pictures.push_back({100 + i * 7919 % 2900, 100 + i * 104729 % 2900});
        const auto forward = fill_buckets(0, settings, framer, pictures);
        std::reverse(pictures.begin(), pictures.end());
        const auto backward = fill_buckets(0, settings, framer, pictures);
        ASSERT_EQ(forward.size(), backward.size());
        for (std::size_t b = 0; b < forward.size(); ++b) {
            EXPECT_EQ(forward[b].shapes, backward[b].shapes);
            ASSERT_EQ(forward[b].samples.size(), backward[b].samples.size());
            const std::size_t last = forward[b].samples.size() - 1;
            for (std::size_t i = 0; i <= last; ++i)
                EXPECT_EQ(forward[b].samples[i], 1999 - backward[b].samples[last - i]);
        }
    }
}

TEST(Buckets, ASmallBucketIsRefusedWithItsNumbersAndTheWaysOut) {
    auto buckets = two_buckets();
    require_effective_batch(buckets, {1, 3, 1}, false);  // 3 samples hold 3
    const auto error = thrown_by([&] { require_effective_batch(buckets, {2, 2, 2}, false); });
    EXPECT_EQ(error.code, Errc::small_bucket);
    for (const char* part :
         {"is 8 samples", "train_batch_size 2 x 2 ranks x gradient_accumulation_steps 2",
          "bucket 192 x 96 of data set 'stamps' holds 3 samples x 1 visits = 3, needs repeats >= 2",
          "set repeats to 2 or more", "to 3 or less", "merge (3 samples of 1 bucket would go to the nearest other one)",
          "drop (3 of 13 samples would take no part)",
          "repeat (repeats would be raised to as many as 2, for 6 visits more an epoch)",
          "allow_dataset_oversubscription"})
        EXPECT_TRUE(error.says(part)) << part << "\n" << error.message;
    EXPECT_FALSE(error.says("128 x 128")) << error.message;
}

TEST(Buckets, RepeatsThatWereSetAreNeverRaised) {
    auto enough = two_buckets(3);
    require_effective_batch(enough, {6, 2, 1}, true);
    EXPECT_EQ(enough[1].repeats, 3);
    auto buckets = two_buckets(1);
    const auto error = thrown_by([&] { require_effective_batch(buckets, {4, 2, 1}, true); });
    EXPECT_EQ(error.code, Errc::small_bucket);
    EXPECT_TRUE(error.says("holds 3 samples x 2 visits = 6, needs repeats >= 2")) << error.message;
    EXPECT_TRUE(error.says(
        "remove repeats of data set 'stamps': small_buckets repeat (allow_dataset_oversubscription) raises only repeats "
        "that are not set"))
        << error.message;
    EXPECT_EQ(buckets[1].repeats, 1);
}

/// A data set of one resolution whose pictures have these sizes.
std::vector<Bucket> buckets_of(const strata::config::ImageDataset& settings,
                               const std::vector<std::pair<PictureSize, int>>& counts, std::size_t dataset = 0) {
    std::vector<PictureSize> pictures;
    for (const auto& [size, count] : counts) pictures.insert(pictures.end(), static_cast<std::size_t>(count), size);
    return fill_buckets(dataset, settings, Framer{settings, {.alignment = 32}}, pictures);
}
strata::config::ImageDataset stamps(std::optional<strata::config::SmallBuckets> if_small) {
    strata::config::ImageDataset settings;
    settings.id = "stamps";
    settings.resolution = 128;
    settings.small_buckets = if_small;
    return settings;
}

TEST(Buckets, SmallOnesGoToTheNearestOfTheirDataSet) {
    const auto merge = stamps(strata::config::SmallBuckets::merge);
    // 96 x 192, 96 x 160, 128 x 128, 160 x 96, 192 x 96; the narrowest goes beside a small one, both then are enough.
    auto buckets =
        buckets_of(merge, {{{50, 100}, 2}, {{96, 160}, 3}, {{100, 100}, 9}, {{160, 96}, 8}, {{200, 100}, 4}});
    merge_small_buckets(buckets, {5, 1, 1});
    ASSERT_EQ(buckets.size(), 3U);
    EXPECT_EQ(buckets[0].size, (PictureSize{96, 160}));
    EXPECT_EQ(buckets[0].samples, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(buckets[0].merged, 2);
    EXPECT_EQ(buckets[1].size, (PictureSize{128, 128}));
    EXPECT_EQ(buckets[1].merged, 0);
    EXPECT_EQ(buckets[2].size, (PictureSize{160, 96}));
    EXPECT_EQ(buckets[2].samples.size(), 12U);
    EXPECT_EQ(buckets[2].merged, 4);
    EXPECT_NO_THROW(require_effective_batch(buckets, {5, 1, 1}, false));
    // What is too few together stays one bucket, and is refused.
    auto few = buckets_of(merge, {{{50, 100}, 2}, {{100, 100}, 2}});
    merge_small_buckets(few, {5, 1, 1});
    ASSERT_EQ(few.size(), 1U);
    const auto error = thrown_by([&] { require_effective_batch(few, {5, 1, 1}, false); });
    EXPECT_TRUE(error.says("holds 4 samples x 1 visits = 4")) << error.message;
    EXPECT_TRUE(error.says("merge (none has another bucket to go to)")) << error.message;
    // Buckets of another data set are no place to go to, and those of data sets that do not merge stay.
    auto both = buckets_of(merge, {{{100, 100}, 2}});
    for (Bucket& bucket : buckets_of(stamps({}), {{{100, 100}, 20}, {{200, 100}, 1}}, 1)) both.push_back(bucket);
    merge_small_buckets(both, {5, 1, 1});
    EXPECT_EQ(both.size(), 3U);
}

TEST(Buckets, RepeatsCountBeforeABucketIsSmall) {
    auto settings = stamps(strata::config::SmallBuckets::merge);
    settings.repeats = 2;
    auto buckets = buckets_of(settings, {{{100, 100}, 9}, {{200, 100}, 2}});
    merge_small_buckets(buckets, {6, 1, 1});
    EXPECT_EQ(buckets.size(), 2U);
    merge_small_buckets(buckets, {7, 1, 1});
    EXPECT_EQ(buckets.size(), 1U);
}

TEST(Buckets, EachDataSetHasItsBatchAndItsWord) {
    auto settings = stamps({});
    settings.train_batch_size = 10;
    auto own = buckets_of(settings, {{{100, 100}, 19}, {{200, 100}, 20}});
    EXPECT_EQ(effective_batch(own[0], {1, 2, 1}), 20);
    const auto error = thrown_by([&] { require_effective_batch(own, {1, 2, 1}, false); });
    EXPECT_TRUE(
        error.says("bucket 128 x 128 of data set 'stamps' holds 19 samples x 1 visits = 19, needs repeats >= 1 "
                   "for its effective batch of 20 (its train_batch_size is 10)"))
        << error.message;
    EXPECT_FALSE(error.says("192 x 96")) << error.message;
    // A data set that says refuse is not repeated by allow_dataset_oversubscription, one that says repeat needs no more.
    auto refused = buckets_of(stamps(strata::config::SmallBuckets::refuse), {{{100, 100}, 2}});
    EXPECT_EQ(thrown_by([&] { require_effective_batch(refused, {5, 1, 1}, true); }).code, Errc::small_bucket);
    auto repeated = buckets_of(stamps(strata::config::SmallBuckets::repeat), {{{100, 100}, 2}});
    require_effective_batch(repeated, {5, 1, 1}, false);
    EXPECT_EQ(repeated[0].repeats, 2);
    const auto dropped = buckets_of(stamps(strata::config::SmallBuckets::drop), {{{100, 100}, 2}, {{200, 100}, 5}});
    EXPECT_EQ(buckets_to_drop(dropped, {5, 1, 1}), (std::vector<std::size_t>{0}));
    EXPECT_TRUE(buckets_to_drop(dropped, {2, 1, 1}).empty());
}

TEST(Buckets, OversubscriptionRaisesOnlyTheRepeatsThatAreNeeded) {
    auto buckets = two_buckets();
    require_effective_batch(buckets, {4, 2, 1}, true);
    EXPECT_EQ(buckets[0].repeats, 0);
    EXPECT_EQ(buckets[1].repeats, 2);
    EXPECT_EQ(buckets[1].repeats_asked, 0);
}

}  // namespace
