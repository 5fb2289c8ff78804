#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/captions.hpp>
#include <strata/datasets/statistics.hpp>

namespace {

using namespace strata::datasets;
using namespace strata::pictures;
namespace config = strata::config;

Sample sample(const std::string& key, std::int64_t width, std::int64_t height, std::uint64_t bytes,
              std::string caption = "a caption") {
    Sample one;
    one.key = key;
    one.version = "1";
    one.size = {width, height};
    one.bytes = bytes;
    one.caption = std::move(caption);
    return one;
}

config::ImageDataset dataset(const std::string& id) {
    config::ImageDataset settings;
    settings.id = id;
    settings.resolution = 64;
    return settings;
}

Collection collection_of(const std::vector<config::ImageDataset>& sets,
                         const std::vector<std::vector<Sample>>& samples) {
    Collection collection{{16, config::BucketMode::nearest, 2}};
    for (std::size_t d = 0; d < sets.size(); ++d) {
        Discovered found;
        found.samples = samples[d];
        found.found = static_cast<std::int64_t>(samples[d].size());
        collection.add(sets[d], std::move(found));
    }
    return collection;
}

void expect_spread(const Spread& spread, double smallest, double median, double largest) {
    EXPECT_EQ(spread.smallest, smallest);
    EXPECT_EQ(spread.median, median);
    EXPECT_EQ(spread.largest, largest);
}

TEST(Statistics, TheMedianIsTheMiddleOneOrTheMeanOfTwo) {
    expect_spread(spread_of({}), 0, 0, 0);
    expect_spread(spread_of({7}), 7, 7, 7);
    expect_spread(spread_of({9, 1}), 1, 5, 9);
    expect_spread(spread_of({5, -3, 4}), -3, 4, 5);
    expect_spread(spread_of({8, 2, 100, 4}), 2, 6, 100);
    expect_spread(spread_of({3, 3, 3, 3, 1}), 1, 3, 3);
    // Against sorting, for orders in which a partition leaves much unsorted.
    std::vector<double> numbers;
    for (int i = 0; i < 101; ++i) numbers.push_back((i * 37) % 101);
    expect_spread(spread_of(numbers), 0, 50, 100);
    numbers.pop_back();  // of 100 * 37 % 101 == 64
    expect_spread(spread_of(numbers), 0, 49.5, 100);
}

TEST(Statistics, PicturesAreOrderedByArea) {
    const PictureStatistics none = picture_statistics({});
    EXPECT_EQ(none.count, 0);
    EXPECT_EQ(none.largest, (PictureSize{0, 0}));
    const PictureStatistics all = picture_statistics(
        {sample("a", 1000, 500, 10), sample("b", 100, 100, 30), sample("c", 200, 50, 20), sample("d", 2000, 1000, 40)});
    EXPECT_EQ(all.count, 4);
    EXPECT_EQ(all.bytes, 100U);
    EXPECT_EQ(all.smallest, (PictureSize{100, 100})) << "of equal areas the narrower one";
    EXPECT_EQ(all.median, (PictureSize{200, 50})) << "of two in the middle the smaller one";
    EXPECT_EQ(all.largest, (PictureSize{2000, 1000}));
    expect_spread(all.megapixels, 0.01, 0.255, 2);
    expect_spread(all.aspect_ratio, 1, 2, 4);
    expect_spread(all.file_bytes, 10, 25, 40);
}

TEST(Statistics, CaptionsAreCountedAsTheyAreFoundAndAsTheyAreShown) {
    config::ImageDataset settings = dataset("a");
    settings.instance_prompt = "ein Öl";
    settings.prepend_instance_prompt = true;
    const std::vector<Sample> samples{sample("a", 64, 64, 1, "red\nblue\n\n"), sample("b", 64, 64, 1, "red"),
                                      sample("c", 64, 64, 1, "größer")};
    const Collection collection = collection_of({settings}, {samples});
    const CaptionStatistics all = caption_statistics(collection.sets()[0], 42);
    EXPECT_EQ(all.found, 4);
    EXPECT_EQ(all.different, (std::vector<std::string>{"ein Öl blue", "ein Öl größer", "ein Öl red"}));
    expect_spread(all.characters, 10, 11, 13);

    settings.disable_multiline_split = true;
    settings.prepend_instance_prompt = false;
    const Collection whole = collection_of({settings}, {samples});
    const CaptionStatistics lines = caption_statistics(whole.sets()[0], 42);
    EXPECT_EQ(lines.found, 3);
    EXPECT_EQ(lines.different, (std::vector<std::string>{"größer", "red", "red\nblue"}));
}

TEST(Statistics, ShuffledOrdersCountAsCaptionsOfTheirOwn) {
    config::ImageDataset settings = dataset("a");
    settings.caption_shuffle.emplace();
    settings.caption_shuffle->enable = true;
    settings.caption_shuffle->count = 3;
    Sample two = sample("a", 64, 64, 1, "one, two, three, four, five, six");
    two.other_captions = {"another column"};
    settings.caption_strategy = config::CaptionStrategy::parquet;
    const Collection collection = collection_of({settings}, {{two}});
    const CaptionStatistics all = caption_statistics(collection.sets()[0], 42);
    EXPECT_EQ(all.found, 2);
    EXPECT_EQ(all.different, CaptionRule(settings, 42).all({two.caption, "another column"}));
    EXPECT_GT(all.different.size(), 3U);
    EXPECT_NE(all.different, caption_statistics(collection.sets()[0], 43).different)
        << "the orders follow from the seed";
}

TEST(Statistics, ARoundIsTurnsAndWhatFillsTheLastBatch) {
    Bucket bucket;
    bucket.samples.resize(10);
    const auto expect_round = [&](std::int64_t batch, std::int64_t turns, std::int64_t batches, std::int64_t filled) {
        const RoundStatistics round = round_statistics(bucket, batch);
        EXPECT_EQ(round.turns, turns);
        EXPECT_EQ(round.batches, batches);
        EXPECT_EQ(round.filled, filled);
    };
    expect_round(4, 10, 3, 2);
    expect_round(5, 10, 2, 0);
    expect_round(16, 10, 1, 6);
    bucket.repeats = 2;
    expect_round(4, 30, 8, 2);
    expect_round(30, 30, 1, 0);
}

/// What the numbers say is what the plan does: turns of every sample, batches of every data set.
TEST(Statistics, RoundsAndSharesAreThoseOfThePlan) {
    config::ImageDataset first = dataset("first");
    first.repeats = 1;
    config::ImageDataset second = dataset("second");
    second.probability = 0.5;
    config::ImageDataset later = dataset("later");
    later.start_epoch = 2;
    std::vector<Sample> samples;
    for (int i = 0; i < 23; ++i) samples.push_back(sample(std::to_string(i), i < 9 ? 64 : 128, 64, 1));
    Collection collection = collection_of({first, second, later}, {samples, samples, samples});
    collection.arrange({2, 2, 1}, 7, false);
    const SamplePlan& plan = collection.plan();

    std::vector<RoundStatistics> rounds(3);
    for (const Bucket& bucket : collection.buckets()) rounds[bucket.dataset] += round_statistics(bucket, 4);
    EXPECT_EQ(rounds[0].turns, 46);
    EXPECT_EQ(rounds[0].batches, 5 + 7);
    EXPECT_EQ(rounds[0].filled, 2);
    EXPECT_EQ(rounds[1].batches, 3 + 4);
    EXPECT_EQ(rounds[1].filled, 3 + 2);

    EXPECT_EQ(batches_by_set(plan, 0, 3), (std::vector<std::int64_t>{12, 4, 0}));
    EXPECT_EQ(batches_by_set(plan, 1, 3), (std::vector<std::int64_t>{12, 3, 7}));
    std::int64_t visits = 0;
    for (std::int64_t position = 0; position < plan.batches_in(0); ++position)
        if (const GlobalBatch batch = plan.batch(position); batch.dataset == 0)
            visits += static_cast<std::int64_t>(batch.visits.size());
    EXPECT_EQ(visits, rounds[0].turns + rounds[0].filled);
}

}  // namespace
