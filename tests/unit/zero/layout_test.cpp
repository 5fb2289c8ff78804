// Partition arithmetic: every element has one owner, whatever the world.

#include <vector>

#include <gtest/gtest.h>

#include <strata/zero/layout.hpp>

namespace {

using strata::zero::Bucket;
using strata::zero::ElementRun;
using strata::zero::make_buckets;
using strata::zero::ParameterExtent;
using strata::zero::share_numel;

TEST(Layout, SharesOfAllRanksCoverABucketWithoutOverlap) {
    for (int world = 1; world <= 9; ++world) {
        for (std::int64_t numel = 1; numel <= 40; ++numel) {
            const Bucket bucket{.begin = 7, .numel = numel};
            std::int64_t at = 7;
            for (int rank = 0; rank < world; ++rank) {
                const ElementRun run = bucket.share_of(rank, world);
                EXPECT_LE(run.numel, share_numel(numel, world));
                if (run.numel == 0) continue;
                EXPECT_EQ(run.begin, at);
                at += run.numel;
            }
            EXPECT_EQ(at, 7 + numel) << numel << " elements over " << world << " ranks";
        }
    }
}

TEST(Layout, BucketsHoldAllParametersInOrder) {
    const std::vector<ParameterExtent> parameters{{6, -1}, {4, -1}, {1, -1},  {90, 0},
                                                  {9, 0},  {7, 1},  {30, -1}, {2, -1}};
    const std::vector<Bucket> buckets = make_buckets(parameters, 10);
    std::int64_t element = 0;
    std::size_t parameter = 0;
    for (const Bucket& bucket : buckets) {
        EXPECT_EQ(bucket.begin, element);
        EXPECT_EQ(bucket.first_parameter, parameter);
        std::int64_t numel = 0;
        for (std::size_t i = 0; i < bucket.parameter_count; ++i) numel += parameters[parameter + i].numel;
        EXPECT_EQ(bucket.numel, numel);
        element += numel;
        parameter += bucket.parameter_count;
    }
    EXPECT_EQ(parameter, parameters.size());
}

TEST(Layout, AUnitIsOneBucketHoweverLarge) {
    const auto buckets = make_buckets({{90, 0}, {90, 0}, {5, 1}}, 10);
    ASSERT_EQ(buckets.size(), 2U);
    EXPECT_EQ(buckets[0].numel, 180);
    EXPECT_EQ(buckets[0].unit, 0);
    EXPECT_EQ(buckets[1].unit, 1);
}

TEST(Layout, OutsideOfUnitsABucketEndsBeforeItExceedsItsSize) {
    const auto buckets = make_buckets({{6, -1}, {4, -1}, {1, -1}, {30, -1}, {2, -1}}, 10);
    ASSERT_EQ(buckets.size(), 4U);
    EXPECT_EQ(buckets[0].numel, 10);
    EXPECT_EQ(buckets[1].numel, 1);
    EXPECT_EQ(buckets[2].numel, 30);
    EXPECT_EQ(buckets[3].numel, 2);
}

TEST(Layout, ParametersOnBothSidesOfAUnitDoNotShareABucket) {
    EXPECT_EQ(make_buckets({{1, -1}, {1, 0}, {1, -1}}, 10).size(), 3U);
}

TEST(Layout, SizesBeyondThirtyTwoBitsAreExact) {
    const auto buckets = make_buckets({{3'000'000'001, 0}, {3'000'000'000, 0}}, 1);
    ASSERT_EQ(buckets.size(), 1U);
    EXPECT_EQ(buckets[0].share_of(1, 2), (ElementRun{3'000'000'001, 3'000'000'000}));
}

}  // namespace
