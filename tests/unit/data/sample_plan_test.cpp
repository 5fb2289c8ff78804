#include <map>
#include <set>

#include <gtest/gtest.h>

#include <strata/data/sample_plan.hpp>

namespace {

using namespace strata::data;

const std::vector<PlanBucket> table{{17, 1}, {40, 1}, {5, 4}, {8, 2}};

using Turns = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;  // (bucket, sample) -> visits
Turns turns_of(const SamplePlan& plan, std::int64_t epoch) {
    Turns turns;
    const auto laid_out = plan.epoch(epoch);
    for (std::int64_t i = 0; i < plan.batches_per_epoch(); ++i) {
        const GlobalBatch batch = laid_out.batch(i);
        for (const Visit& visit : batch.visits) ++turns[{batch.bucket, visit.sample}];
    }
    return turns;
}

TEST(SamplePlan, EverySampleHasItsVisitsAndOnlyTheRemainderComesOnTop) {
    for (const std::int64_t global : {1, 3, 4, 8, 16, 64}) {
        const SamplePlan plan{table, 42, global};
        for (const std::int64_t epoch : {0, 1, 5}) {
            const Turns turns = turns_of(plan, epoch);
            for (std::size_t b = 0; b < table.size(); ++b) {
                std::int64_t total = 0;
                for (std::int64_t s = 0; s < table[b].count; ++s) {
                    const auto found = turns.find({static_cast<std::int64_t>(b), s});
                    ASSERT_TRUE(found != turns.end());
                    EXPECT_GE(found->second, table[b].visits);
                    total += found->second;
                }
                const std::int64_t wanted = table[b].count * table[b].visits;
                EXPECT_EQ(total, (wanted + global - 1) / global * global);
            }
        }
    }
}

TEST(SamplePlan, WithoutARemainderEveryVisitCountIsExact) {
    const SamplePlan plan{{{16, 1}, {4, 3}}, 7, 4};
    for (const auto& [key, visits] : turns_of(plan, 3)) EXPECT_EQ(visits, key.first == 0 ? 1 : 3);
    EXPECT_EQ(plan.batches_per_epoch(), 4 + 3);
}

TEST(SamplePlan, TheLastBatchIsFilledFromTheStartOfTheSameOrder) {
    const SamplePlan plan{{{10, 1}}, 1, 4};
    const auto epoch = plan.epoch(0);
    std::map<std::int64_t, int> seen;
    for (std::int64_t i = 0; i < 3; ++i)
        for (const Visit& visit : epoch.batch(i).visits) ++seen[visit.sample];
    EXPECT_EQ(seen.size(), 10U);
    int twice = 0;
    for (const auto& [sample, count] : seen) twice += count == 2 ? 1 : 0;
    EXPECT_EQ(twice, 2);
}

TEST(SamplePlan, IsAPureFunctionOfSeedEpochAndIndex) {
    const SamplePlan first{table, 42, 8};
    const SamplePlan second{table, 42, 8};
    const auto a = first.epoch(3);
    (void)second.epoch(0);
    const auto b = second.epoch(3);
    for (std::int64_t i = first.batches_per_epoch() - 1; i >= 0; --i) {
        const GlobalBatch left = a.batch(i);
        const GlobalBatch right = b.batch(i);
        EXPECT_EQ(left.bucket, right.bucket);
        for (std::size_t v = 0; v < 8; ++v) {
            EXPECT_EQ(left.visits[v].sample, right.visits[v].sample);
            EXPECT_EQ(left.visits[v].random, right.visits[v].random);
        }
    }
}

TEST(SamplePlan, SeedsAndEpochsDiffer) {
    const auto order = [](std::uint64_t seed, std::int64_t epoch) {
        const auto laid_out = SamplePlan{{{100, 1}}, seed, 100}.epoch(epoch);
        std::vector<std::int64_t> samples;
        for (const Visit& visit : laid_out.batch(0).visits) samples.push_back(visit.sample);
        return samples;
    };
    std::set<std::vector<std::int64_t>> orders;
    for (std::uint64_t seed = 0; seed < 4; ++seed)
        for (std::int64_t epoch = 0; epoch < 4; ++epoch) orders.insert(order(seed, epoch));
    EXPECT_EQ(orders.size(), 16U);
}

TEST(SamplePlan, TheOrderOfTheFirstEpochIsFixedForever) {
    // A change of this sequence would break the exact resume of runs that were started before it.
    std::vector<std::int64_t> samples;
    for (const Visit& visit : SamplePlan{{{8, 1}}, 42, 8}.epoch(0).batch(0).visits) samples.push_back(visit.sample);
    EXPECT_EQ(samples, (std::vector<std::int64_t>{7, 2, 6, 4, 0, 3, 5, 1}));
}

TEST(SamplePlan, EveryPlaceInTheOrderIsEquallyLikely) {
    std::map<std::int64_t, int> first;
    for (std::int64_t epoch = 0; epoch < 4000; ++epoch) ++first[SamplePlan{{{8, 1}}, 9, 8}.epoch(epoch).batch(0).visits[0].sample];
    for (const auto& [sample, count] : first) EXPECT_NEAR(count, 500, 5 * 21) << sample;  // five standard deviations
}

TEST(SamplePlan, VisitsHaveEvenlySpreadRandomNumbersOfTheirOwn) {
    const SamplePlan plan{{{1000, 1}}, 3, 10};
    const auto epoch = plan.epoch(0);
    std::set<std::uint64_t> numbers;
    double sum = 0;
    for (std::int64_t i = 0; i < plan.batches_per_epoch(); ++i)
        for (const Visit& visit : epoch.batch(i).visits) {
            numbers.insert(visit.random);
            sum += unit_interval(visit.random);
        }
    EXPECT_EQ(numbers.size(), 1000U);
    EXPECT_NEAR(sum / 1000, 0.5, 0.05);
}

}  // namespace
