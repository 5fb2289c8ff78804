#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/collection.hpp>
#include <strata/datasets/statistics.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::datasets;
using strata::Errc;
using strata::config::DataBackendSampling;
using strata::config::ImageDataset;
using strata::config::SmallBuckets;
using strata::pictures::PictureSize;
using strata_test::thrown_by;

ImageDataset dataset(const std::string& id) {
    ImageDataset settings;
    settings.id = id;
    settings.instance_data_dir = "pictures/" + id;
    settings.resolution = 128;
    return settings;
}
/// Counts of pictures of 128 x 128 and of 192 x 96.
struct Counts {
    int square;
    int wide;
};
Collection collection_of(const std::vector<std::pair<ImageDataset, Counts>>& sets) {
    Collection collection{{32, strata::config::BucketMode::nearest, 2}};
    for (const auto& [settings, counts] : sets) {
        Discovered found;
        for (int i = 0; i < counts.square + counts.wide; ++i) {
            Sample sample;
            sample.key = std::to_string(1000 + i) + ".png";
            sample.size = i < counts.square ? PictureSize{100, 100} : PictureSize{200, 100};
            sample.caption = "caption " + std::to_string(i);
            found.samples.push_back(std::move(sample));
        }
        found.found = counts.square + counts.wide;
        collection.add(settings, std::move(found));
    }
    return collection;
}
bool says(const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
}
std::string text_of(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
}
/// Every visit of an epoch is of a sample that is there.
std::int64_t visits_of_epoch(const Collection& collection) {
    std::int64_t visits = 0;
    for (std::int64_t position = 0; position < collection.plan().batches_in(0); ++position) {
        const GlobalBatch batch = collection.plan().batch(position);
        const PictureSet& set = collection.sets()[static_cast<std::size_t>(batch.dataset)];
        const Bucket& bucket = collection.buckets()[set.first_bucket + static_cast<std::size_t>(batch.bucket)];
        EXPECT_EQ(bucket.dataset, static_cast<std::size_t>(batch.dataset));
        EXPECT_EQ(static_cast<std::int64_t>(batch.visits.size()),
                  collection.plan().global_batch(static_cast<std::size_t>(batch.dataset)));
        for (const Visit& visit : batch.visits) {
            EXPECT_LT(bucket.samples.at(static_cast<std::size_t>(visit.sample)), set.samples.size());
            ++visits;
        }
    }
    return visits;
}

TEST(Collection, DroppedSamplesTakeNoPartAndAreNamed) {
    ImageDataset drop = dataset("drop");
    drop.small_buckets = SmallBuckets::drop;
    Collection collection = collection_of({{drop, {8, 3}}, {dataset("keep"), {4, 8}}});
    collection.arrange({2, 2, 1}, 42, false);
    EXPECT_EQ(collection.sets()[0].samples.size(), 8U);
    ASSERT_EQ(collection.buckets().size(), 3U);
    EXPECT_EQ(visits_of_epoch(collection), 8 + 4 + 8);
    const Report report = collection.report();
    EXPECT_EQ(report.used, 20);
    EXPECT_EQ(report.count(SkipReason::small_bucket), 3);
    ASSERT_EQ(report.skipped.size(), 3U);
    EXPECT_EQ(report.skipped[0].dataset, "drop");
    EXPECT_EQ(report.skipped[0].place, "pictures/drop/1008.png");
    EXPECT_EQ(report.skipped[0].detail, "bucket 192 x 96 has 3 samples for an effective batch of 4");
    EXPECT_TRUE(says(report.lines(),
                     "  3 skipped, in a bucket that is too small: pictures/drop/1008.png (bucket 192 x 96 "
                     "has 3 samples for an effective batch of 4) and 2 more"))
        << text_of(report.lines());
    collection.arrange({2, 2, 1}, 42, false);  // nothing more to drop
    EXPECT_EQ(collection.report().skipped.size(), 3U);
}

TEST(Collection, WhereEverythingIsDroppedNothingCanBeTrainedOn) {
    ImageDataset drop = dataset("drop");
    drop.small_buckets = SmallBuckets::drop;
    Collection all = collection_of({{drop, {2, 3}}});
    const auto error = thrown_by([&] { all.arrange({4, 1, 1}, 42, false); });
    EXPECT_EQ(error.code, Errc::no_samples);
    EXPECT_TRUE(error.says("none of the 5 pictures can be trained on: 5 in a bucket that is too small"))
        << error.message;
    EXPECT_TRUE(error.says("set small_buckets to merge or repeat")) << error.message;
    Collection one = collection_of({{drop, {2, 3}}, {dataset("keep"), {8, 0}}});
    one.arrange({4, 1, 1}, 42, false);
    EXPECT_EQ(visits_of_epoch(one), 8);
}

TEST(Collection, MergedSamplesAreShownInTheirNewBucket) {
    ImageDataset merge = dataset("merge");
    merge.small_buckets = SmallBuckets::merge;
    Collection collection = collection_of({{merge, {8, 3}}, {dataset("keep"), {4, 8}}});
    collection.arrange({2, 2, 1}, 42, false);
    ASSERT_EQ(collection.buckets().size(), 3U);
    EXPECT_EQ(collection.buckets()[0].samples.size(), 11U);
    EXPECT_EQ(collection.sets()[1].first_bucket, 1U);
    EXPECT_EQ(visits_of_epoch(collection), 12 + 4 + 8);
    const Report report = collection.report();
    EXPECT_EQ(report.used, 23);
    EXPECT_TRUE(report.skipped.empty());
    EXPECT_TRUE(says(report.lines(),
                     "bucket 128 x 128 of 'merge': 11 samples, 0 repeats, 3 of the samples from smaller "
                     "buckets"))
        << text_of(report.lines());
    // What breaks later is taken out of all buckets, which are merged anew.
    collection.leave_out({{0, 10}, {}}, {{"merge", "1000.png", SkipReason::unreadable, ""},
                                         {"merge", "1010.png", SkipReason::unreadable, ""}});
    EXPECT_EQ(collection.buckets().size(), 4U);
    collection.arrange({2, 2, 1}, 42, false);
    EXPECT_EQ(collection.buckets()[0].samples.size(), 9U);
    EXPECT_EQ(collection.buckets()[0].merged, 2);
}

TEST(Collection, DataSetsHaveBatchesOfTheirOwn) {
    ImageDataset large = dataset("large");
    large.train_batch_size = 4;
    ImageDataset repeat = dataset("repeat");
    repeat.train_batch_size = 1;
    repeat.small_buckets = SmallBuckets::repeat;
    Collection collection = collection_of({{large, {16, 0}}, {repeat, {2, 3}}, {dataset("plain"), {8, 0}}});
    collection.arrange({2, 2, 1}, 42, false);
    EXPECT_EQ(collection.plan().global_batch(0), 8);
    EXPECT_EQ(collection.plan().global_batch(1), 2);
    EXPECT_EQ(collection.plan().global_batch(2), 4);
    EXPECT_EQ(collection.plan().batches_in(0), 2 + 1 + 2 + 2);
    EXPECT_EQ(visits_of_epoch(collection), 16 + 2 + 4 + 8);
    EXPECT_TRUE(says(collection.report().lines(),
                     "7 steps an epoch, each of an effective batch of 4 samples, of 'large' 8, of 'repeat' 2"))
        << text_of(collection.report().lines());
    const auto error = thrown_by([&] { collection.arrange({2, 2, 4}, 42, false); });
    EXPECT_EQ(error.code, Errc::small_bucket);
    EXPECT_TRUE(error.says("for its effective batch of 32 (its train_batch_size is 4)")) << error.message;
}

TEST(Collection, SamplingSaysHowDataSetsAreDrawn) {
    ImageDataset small = dataset("small");
    ImageDataset half = dataset("half");
    half.probability = 0.5;
    const auto of_small = [](const Collection& collection, std::int64_t begin, std::int64_t end) {
        std::int64_t count = 0;
        for (std::int64_t i = begin; i < end; ++i) count += collection.plan().batch(i).dataset == 0 ? 1 : 0;
        return count;
    };
    Collection collection = collection_of({{small, {10, 0}}, {half, {400, 0}}});
    collection.arrange({1, 1, 1}, 42, false, DataBackendSampling::uniform);
    EXPECT_EQ(collection.plan().batches_in(0), 10 + 200);
    EXPECT_EQ(of_small(collection, 0, 15), 10) << "two of three steps, until it is used up";
    EXPECT_EQ(of_small(collection, 15, 210), 0);
    EXPECT_EQ(visits_of_epoch(collection), 210);
    collection.arrange({1, 1, 1}, 42, false);
    EXPECT_EQ(collection.plan().batches_in(0), 210);
    EXPECT_EQ(of_small(collection, 0, 210), 10);
    EXPECT_LT(of_small(collection, 0, 15), 5);

    small.disable_after_epoch_step = 40;
    Collection falling = collection_of({{small, {100, 0}}, {half, {400, 0}}});
    falling.arrange({1, 1, 1}, 42, false);
    for (const std::int64_t epoch : {0, 1, 5}) {
        const std::int64_t begin = falling.plan().batches_before(epoch);
        EXPECT_GT(of_small(falling, begin, begin + 20), of_small(falling, begin + 20, begin + 40));
        EXPECT_EQ(of_small(falling, begin + 40, falling.plan().batches_before(epoch + 1)), 0);
    }
}

}  // namespace
