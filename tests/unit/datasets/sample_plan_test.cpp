#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/random.hpp>
#include <strata/datasets/sample_plan.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::core;
using namespace strata::datasets;
using strata::Errc;
using strata_test::thrown_by;

const std::vector<PlanBucket> table{{17, 1}, {40, 1}, {5, 4}, {8, 2}};

using Turns = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t>;  // data set, bucket, sample
Turns turns_of(const SamplePlan& plan, std::int64_t begin, std::int64_t end) {
    Turns turns;
    for (std::int64_t position = begin; position < end; ++position) {
        const GlobalBatch batch = plan.batch(position);
        for (const Visit& visit : batch.visits) ++turns[{batch.dataset, batch.bucket, visit.sample}];
    }
    return turns;
}
Turns turns_of_epoch(const SamplePlan& plan, std::int64_t epoch) {
    return turns_of(plan, plan.batches_before(epoch), plan.batches_before(epoch + 1));
}

std::int64_t batches_of(const std::vector<PlanBucket>& buckets, std::int64_t global) {
    std::int64_t sum = 0;
    for (const PlanBucket& bucket : buckets) sum += (bucket.count * bucket.visits + global - 1) / global;
    return sum;
}

/// Every sample of a data set has its visits, and only the remainder comes on top.
void expect_a_round(const Turns& turns, std::int64_t dataset, const std::vector<PlanBucket>& buckets,
                    std::int64_t global) {
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        std::int64_t total = 0;
        for (std::int64_t s = 0; s < buckets[b].count; ++s) {
            const auto found = turns.find({dataset, static_cast<std::int64_t>(b), s});
            ASSERT_TRUE(found != turns.end()) << b << " " << s;
            EXPECT_GE(found->second, buckets[b].visits);
            total += found->second;
        }
        const std::int64_t wanted = buckets[b].count * buckets[b].visits;
        EXPECT_EQ(total, (wanted + global - 1) / global * global);
    }
}

TEST(SamplePlan, EverySampleHasItsVisitsAndOnlyTheRemainderComesOnTop) {
    for (const std::int64_t global : {1, 3, 4, 8, 16, 64}) {
        const SamplePlan plan{{{table}}, 42, global};
        EXPECT_EQ(plan.batches_in(0), batches_of(table, global));
        for (const std::int64_t epoch : {0, 1, 5}) expect_a_round(turns_of_epoch(plan, epoch), 0, table, global);
    }
}

TEST(SamplePlan, WithoutARemainderEveryVisitCountIsExact) {
    const SamplePlan plan{{{{{16, 1}, {4, 3}}}}, 7, 4};
    for (const auto& [key, visits] : turns_of_epoch(plan, 3)) EXPECT_EQ(visits, std::get<1>(key) == 0 ? 1 : 3);
    EXPECT_EQ(plan.batches_in(3), 4 + 3);
    EXPECT_EQ(plan.size(), std::nullopt);
}

TEST(SamplePlan, TheLastBatchIsFilledFromTheStartOfTheSameTurns) {
    const SamplePlan plan{{{{{10, 1}}}}, 1, 4};
    std::map<std::int64_t, int> seen;
    for (std::int64_t i = 0; i < 3; ++i)
        for (const Visit& visit : plan.batch(i).visits) ++seen[visit.sample];
    EXPECT_EQ(seen.size(), 10U);
    EXPECT_EQ(std::count_if(seen.begin(), seen.end(), [](const auto& one) { return one.second == 2; }), 2);
}

TEST(SamplePlan, FreshVisitsAreEverySampleOnceHoweverABatchIsCut) {
    for (const std::int64_t parts : {1, 2, 3, 6}) {
        const SamplePlan plan{{{{{7, 1}, {2, 1}, {12, 1}}}}, 3, 6};
        ASSERT_EQ(plan.batches_in(0), 2 + 1 + 2);
        Turns turns;
        for (std::int64_t position = 0; position < plan.batches_in(0); ++position)
            for (std::int64_t part = 0; part < parts; ++part) {
                const GlobalBatch batch = plan.part(position, part, parts);
                ASSERT_GE(batch.fresh, 0);
                ASSERT_LE(batch.fresh, 6 / parts);
                for (std::int64_t i = 0; i < batch.fresh; ++i)
                    ++turns[{0, batch.bucket, batch.visits[static_cast<std::size_t>(i)].sample}];
            }
        EXPECT_EQ(turns.size(), 7U + 2 + 12);
        for (const auto& [sample, count] : turns) EXPECT_EQ(count, 1);
    }
}

TEST(SamplePlan, IsAPureFunctionOfSeedAndPosition) {
    const std::vector<PlanDataset> sets{{table}, {{{9, 1}}, 0.4}, {{{30, 2}}, 1, 2, 0, 0, 31}};
    const SamplePlan first{sets, 42, 8};
    const SamplePlan second{sets, 42, 8};
    for (std::int64_t position = 200; position >= 0; --position) {
        const GlobalBatch left = first.batch(position);
        const GlobalBatch right = second.batch((position * 7) % 201);
        const GlobalBatch again = second.batch(position);
        (void)right;
        EXPECT_EQ(left.epoch, again.epoch);
        EXPECT_EQ(left.dataset, again.dataset);
        EXPECT_EQ(left.bucket, again.bucket);
        EXPECT_EQ(left.random, again.random);
        ASSERT_EQ(left.visits.size(), 8U);
        for (std::size_t v = 0; v < 8; ++v) {
            EXPECT_EQ(left.visits[v].sample, again.visits[v].sample);
            EXPECT_EQ(left.visits[v].random, again.visits[v].random);
        }
    }
}

TEST(SamplePlan, SeedsAndEpochsDiffer) {
    std::set<std::vector<std::int64_t>> orders;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const SamplePlan plan{{{{{100, 1}}}}, seed, 100};
        for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
            std::vector<std::int64_t> samples;
            for (const Visit& visit : plan.batch(epoch).visits) samples.push_back(visit.sample);
            orders.insert(samples);
        }
    }
    EXPECT_EQ(orders.size(), 16U);
}

TEST(SamplePlan, TheOrderIsFixedForever) {
    // A change of this sequence would break the exact resume of runs that were started before it.
    std::vector<std::int64_t> samples;
    const SamplePlan plan{{{{{8, 1}, {20, 1}}}}, 42, 4};
    for (std::int64_t position = 0; position < 3; ++position)
        for (const Visit& visit : plan.batch(position).visits)
            samples.push_back(plan.batch(position).bucket * 100 + visit.sample);
    EXPECT_EQ(samples, (std::vector<std::int64_t>{114, 102, 107, 112, 100, 104, 105, 108, 110, 111, 117, 119}));
}

TEST(SamplePlan, EveryPlaceInTheOrderIsEquallyLikely) {
    const SamplePlan plan{{{{{8, 1}}}}, 9, 8};
    std::map<std::int64_t, int> first;
    for (std::int64_t epoch = 0; epoch < 4000; ++epoch) ++first[plan.batch(epoch).visits[0].sample];
    EXPECT_EQ(first.size(), 8U);
    for (const auto& [sample, count] : first) EXPECT_NEAR(count, 500, 5 * 21) << sample;  // five standard deviations
}

TEST(SamplePlan, VisitsAndBatchesHaveEvenlySpreadRandomNumbersOfTheirOwn) {
    const SamplePlan plan{{{{{1000, 1}}}}, 3, 10};
    std::set<std::uint64_t> numbers;
    double sum = 0;
    for (std::int64_t position = 0; position < 200; ++position) {
        const GlobalBatch batch = plan.batch(position);
        numbers.insert(batch.random);
        for (const Visit& visit : batch.visits) {
            numbers.insert(visit.random);
            sum += unit_interval(visit.random);
        }
    }
    EXPECT_EQ(numbers.size(), 2200U);
    EXPECT_NEAR(sum / 2000, 0.5, 0.04);
}

TEST(SamplePlan, DataSetsAreJoinedAndShuffledTogether) {
    const SamplePlan plan{{{{{40, 1}}}, {{{24, 2}}}}, 5, 4};
    ASSERT_EQ(plan.batches_in(0), 10 + 12);
    const Turns turns = turns_of_epoch(plan, 1);
    for (const auto& [key, visits] : turns) EXPECT_EQ(visits, std::get<0>(key) == 0 ? 1 : 2);
    EXPECT_EQ(turns.size(), 64U);
    int changes = 0;
    for (std::int64_t i = 1; i < 22; ++i) changes += plan.batch(i).dataset != plan.batch(i - 1).dataset ? 1 : 0;
    EXPECT_GT(changes, 4);
}

TEST(SamplePlan, AProbabilityIsTheShareOfARoundThatAnEpochShows) {
    const std::vector<PlanBucket> small{{12, 1}, {20, 1}};  // 8 batches a round
    const SamplePlan plan{{{table}, {small, 0.25}, {small, 0.3}}, 42, 4};
    for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
        const auto shown = [](std::int64_t epochs) {
            return static_cast<std::int64_t>(std::ceil(static_cast<double>(epochs * 8) * 0.3));
        };
        EXPECT_EQ(plan.batches_in(epoch), batches_of(table, 4) + 2 + shown(epoch + 1) - shown(epoch));
        const Turns turns = turns_of_epoch(plan, epoch);
        expect_a_round(turns, 0, table, 4);
    }
    for (std::int64_t round = 0; round < 10; ++round)
        for (const auto& [key, visits] :
             turns_of(plan, plan.batches_before(4 * round), plan.batches_before(4 * round + 4)))
            if (std::get<0>(key) == 1) {
                EXPECT_EQ(visits, 1);
            }
    for (const auto& [key, visits] : turns_of(plan, 0, plan.batches_before(40)))  // 0.3 * 40 = 12 rounds
        if (std::get<0>(key) == 2) {
            EXPECT_EQ(visits, 12);
        }
}

TEST(SamplePlan, DataSetsJoinAndLeaveByEpoch) {
    const std::vector<PlanBucket> ten{{10, 1}};
    const SamplePlan plan{{{ten, 1, 1, 2}, {ten, 1, 2, 0}, {ten, 1, 6, 6}}, 42, 5};
    std::vector<std::int64_t> batches;
    for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
        batches.push_back(plan.batches_in(epoch));
        std::set<std::int64_t> sets;
        for (const auto& [key, visits] : turns_of_epoch(plan, epoch)) {
            sets.insert(std::get<0>(key));
            EXPECT_EQ(visits, 1);
        }
        EXPECT_EQ(sets.contains(0), epoch < 2);
        EXPECT_EQ(sets.contains(1), epoch >= 1);
        EXPECT_EQ(sets.contains(2), epoch == 5);
    }
    EXPECT_EQ(batches, (std::vector<std::int64_t>{2, 4, 2, 2, 2, 4, 2, 2}));
}

TEST(SamplePlan, ADataSetEndsAtItsStep) {
    // Data set 0 has 20 batches an epoch, data set 1 ten until step 50 is done.
    const SamplePlan plan{{{{{20, 1}}}, {{{10, 1}}, 1, 1, 0, 0, 50}}, 42, 1};
    int late = 0;
    for (std::int64_t position = 0; position < 200; ++position) {
        if (plan.batch(position).dataset == 0) continue;
        EXPECT_LE(position + 1, 50);
        late += position >= 30 ? 1 : 0;
    }
    EXPECT_GT(late, 0);  // the epoch in which it ends has some of it
    for (std::int64_t epoch = 0; epoch < 8; ++epoch) {
        const Turns turns = turns_of_epoch(plan, epoch);
        expect_a_round(turns, 0, {{20, 1}}, 1);
        EXPECT_EQ(plan.batches_in(epoch), epoch == 0 ? 30 : epoch > 1 ? 20 : static_cast<std::int64_t>(turns.size()));
        for (const auto& [key, visits] : turns) EXPECT_EQ(visits, 1);
    }
}

TEST(SamplePlan, ADataSetBeginsAtItsStep) {
    const SamplePlan plan{{{{{20, 1}}}, {{{1000, 1}}, 1, 1, 0, 31, 0}}, 42, 1};
    bool in_epoch_one = false;
    for (std::int64_t position = 0; position < 2000; ++position) {
        const GlobalBatch batch = plan.batch(position);
        if (batch.dataset == 1) {
            EXPECT_GE(position + 1, 31);
        }
        in_epoch_one |= batch.dataset == 1 && batch.epoch == 1;
    }
    EXPECT_TRUE(in_epoch_one);  // it joins in the middle of the second epoch
    EXPECT_EQ(plan.batches_in(0), 20);
    EXPECT_EQ(plan.batches_in(2), 1020);
    expect_a_round(turns_of_epoch(plan, 1), 0, {{20, 1}}, 1);
    expect_a_round(turns_of_epoch(plan, 2), 1, {{1000, 1}}, 1);
}

TEST(SamplePlan, TheSequenceEndsWhereNoDataSetTakesPart) {
    const std::vector<PlanBucket> ten{{10, 1}};
    const SamplePlan epochs{{{ten, 1, 1, 3}}, 42, 1};
    EXPECT_EQ(epochs.size(), 30);
    EXPECT_EQ(epochs.batch(29).epoch, 2);
    EXPECT_EQ(epochs.batches_before(100), 30);
    const auto error = thrown_by([&] { (void)epochs.batch(30); });
    EXPECT_EQ(error.code, Errc::no_samples);
    EXPECT_TRUE(error.says("after step 30")) << error.message;

    // Steps 26 to 39 have no data set, and step 40 is never reached.
    const SamplePlan steps{{{ten, 1, 1, 0, 0, 25}, {ten, 1, 1, 0, 40, 0}}, 42, 1};
    EXPECT_EQ(steps.size(), 25);
    // Epochs without a data set take no step.
    const SamplePlan gap{{{ten, 1, 1, 2}, {ten, 1, 1000001, 0}}, 42, 1};
    EXPECT_EQ(gap.size(), std::nullopt);
    EXPECT_EQ(gap.batch(20).epoch, 1000000);
    EXPECT_EQ(gap.batches_before(1000000), 20);
    EXPECT_EQ((SamplePlan{{{{}}}, 42, 1}.size()), 0);
}

/// What must hold for every table, whatever its numbers are.
TEST(SamplePlan, SchedulesOfAllKindsKeepTheirEpochsAndSteps) {
    Random random{17};
    const auto number = [&](std::uint64_t least, std::uint64_t most) {
        return static_cast<std::int64_t>(least + random.below(most - least + 1));
    };
    for (int trial = 0; trial < 300; ++trial) {
        std::vector<PlanDataset> sets;
        for (std::int64_t i = number(1, 4); i > 0; --i) {
            PlanDataset set{{{number(1, 9), number(1, 3)}, {number(1, 30), 1}}};
            if (number(0, 2) == 0) set.probability = static_cast<double>(number(1, 10)) / 10;
            if (number(0, 2) == 0) set.start_epoch = number(1, 6);
            if (number(0, 3) == 0) set.end_epoch = set.start_epoch + number(0, 5);
            if (number(0, 2) == 0) set.start_step = number(0, 40);
            if (number(0, 3) == 0) set.end_step = std::max<std::int64_t>(1, set.start_step) + number(0, 40);
            sets.push_back(set);
        }
        const std::int64_t global = number(1, 5);
        const SamplePlan plan{sets, 42, global};
        const std::int64_t end = std::min<std::int64_t>(plan.size().value_or(400), 400);
        std::int64_t last_epoch = 0;
        std::map<std::tuple<std::int64_t, std::int64_t>, std::int64_t> batches;  // epoch, data set
        for (std::int64_t position = 0; position < end; ++position) {
            const GlobalBatch batch = plan.batch(position);
            const PlanDataset& set = sets[static_cast<std::size_t>(batch.dataset)];
            const std::int64_t step = position + 1;
            ASSERT_GE(batch.epoch, last_epoch);
            ASSERT_GE(position, plan.batches_before(batch.epoch));
            ASSERT_LT(position, plan.batches_before(batch.epoch + 1));
            ASSERT_GE(batch.epoch + 1, set.start_epoch);
            ASSERT_TRUE(set.end_epoch == 0 || batch.epoch + 1 <= set.end_epoch);
            ASSERT_GE(step, set.start_step);
            ASSERT_TRUE(set.end_step == 0 || step <= set.end_step);
            ++batches[{batch.epoch, batch.dataset}];
            last_epoch = batch.epoch;
        }
        // A data set that is in its steps from the first to the last batch of an epoch is shown as its share says.
        for (std::int64_t epoch = 0; epoch < last_epoch; ++epoch) {
            const std::int64_t first = plan.batches_before(epoch) + 1;
            const std::int64_t behind = plan.batches_before(epoch + 1) + 1;
            for (std::size_t d = 0; d < sets.size(); ++d) {
                const PlanDataset& set = sets[d];
                if (epoch + 1 < set.start_epoch || (set.end_epoch != 0 && epoch + 1 > set.end_epoch)) continue;
                if (first < set.start_step || (set.end_step != 0 && behind > set.end_step)) continue;
                const auto shown = [&](std::int64_t epochs) {
                    return std::ceil(static_cast<double>(epochs * batches_of(set.buckets, global)) * set.probability);
                };
                const std::int64_t since = epoch + 1 - set.start_epoch;
                ASSERT_EQ((batches[{epoch, static_cast<std::int64_t>(d)}]), shown(since + 1) - shown(since)) << trial;
            }
        }
        if (plan.size() && *plan.size() <= 400) {
            ASSERT_EQ(thrown_by([&] { (void)plan.batch(end); }).code, Errc::no_samples);
        }
    }
}

PlanDataset weighted(std::vector<PlanBucket> buckets, double weight) {
    PlanDataset set{std::move(buckets)};
    set.weight = weight;
    return set;
}

TEST(SamplePlan, EveryDataSetHasStepsOfItsOwnSize) {
    PlanDataset large{table};
    large.batch = 16;
    PlanDataset small{{{10, 1}, {7, 2}}};
    small.batch = 2;
    const SamplePlan plan{{large, small, {table}}, 42, 8};
    EXPECT_EQ(plan.global_batch(), 8);
    EXPECT_EQ(plan.global_batch(0), 16);
    EXPECT_EQ(plan.global_batch(1), 2);
    EXPECT_EQ(plan.global_batch(2), 8);
    EXPECT_EQ(plan.batches_in(0), batches_of(table, 16) + 5 + 7 + batches_of(table, 8));
    for (const std::int64_t epoch : {0, 3}) {
        const Turns turns = turns_of_epoch(plan, epoch);
        expect_a_round(turns, 0, table, 16);
        expect_a_round(turns, 1, small.buckets, 2);
        expect_a_round(turns, 2, table, 8);
    }
}

/// Micro-batches and ranks take equal parts of a step, however it is cut, whatever data set it is of.
TEST(SamplePlan, PartsOfAStepAreTheStep) {
    PlanDataset large{table};
    large.batch = 16;
    const SamplePlan plan{{large, {table}}, 7, 8};
    for (std::int64_t position = 0; position < 60; ++position) {
        const GlobalBatch whole = plan.batch(position);
        ASSERT_EQ(whole.visits.size(), whole.dataset == 0 ? 16U : 8U);
        for (const std::int64_t parts : {1, 2, 4, 8}) {
            std::vector<std::int64_t> samples;
            for (std::int64_t index = 0; index < parts; ++index) {
                const GlobalBatch part = plan.part(position, index, parts);
                EXPECT_EQ(part.random, whole.random);
                ASSERT_EQ(static_cast<std::int64_t>(part.visits.size() * static_cast<std::size_t>(parts)),
                          plan.global_batch(static_cast<std::size_t>(whole.dataset)));
                for (const Visit& visit : part.visits) {
                    EXPECT_EQ(visit.random, whole.visits[samples.size()].random);
                    samples.push_back(visit.sample);
                }
            }
            for (std::size_t v = 0; v < whole.visits.size(); ++v) ASSERT_EQ(samples[v], whole.visits[v].sample);
        }
    }
}

TEST(SamplePlan, WithWeightsSmallDataSetsAreDrawnAsOftenUntilTheyAreUsedUp) {
    const std::vector<PlanBucket> small{{10, 1}};
    const std::vector<PlanBucket> large{{200, 1}};
    const SamplePlan plan{{weighted(small, 1), weighted(large, 1), weighted({{40, 1}}, 2)}, 42, 1};
    EXPECT_EQ(plan.batches_in(0), 250);  // the same samples as without weights
    std::set<std::vector<std::int64_t>> orders;
    for (const std::int64_t epoch : {0, 1, 2, 9}) {
        const Turns turns = turns_of_epoch(plan, epoch);
        expect_a_round(turns, 0, small, 1);
        expect_a_round(turns, 1, large, 1);
        expect_a_round(turns, 2, {{40, 1}}, 1);
        std::vector<std::int64_t> sets;
        const std::int64_t begin = plan.batches_before(epoch);
        for (std::int64_t i = 0; i < 250; ++i) sets.push_back(plan.batch(begin + i).dataset);
        // Steps 1 to 40: 10, 10 and 20 batches; 41 to 100: 20 and 40; and the rest of the large one.
        const auto count = [&](std::int64_t first, std::int64_t last, std::int64_t set) {
            return std::count(sets.begin() + first, sets.begin() + last, set);
        };
        EXPECT_EQ(count(0, 40, 0), 10);
        EXPECT_EQ(count(0, 40, 1), 10);
        EXPECT_EQ(count(0, 40, 2), 20);
        EXPECT_EQ(count(40, 70, 1), 10);
        EXPECT_EQ(count(40, 70, 2), 20);
        EXPECT_EQ(count(70, 250, 1), 180);
        orders.insert(sets);
    }
    EXPECT_EQ(orders.size(), 4U) << "steps of a phase are shuffled";
    // Without weights the small one is drawn all the epoch long.
    const SamplePlan plain{{{small}, {large}}, 42, 1};
    std::int64_t late = 0;
    for (std::int64_t i = 40; i < 210; ++i) late += plain.batch(i).dataset == 0 ? 1 : 0;
    EXPECT_GT(late, 3);
}

TEST(SamplePlan, AProbabilityHoldsWithWeightsToo) {
    PlanDataset part = weighted({{8, 1}}, 0.3);
    part.probability = 0.3;
    const SamplePlan plan{{weighted(table, 1), part}, 42, 1};
    for (const auto& [key, visits] : turns_of(plan, 0, plan.batches_before(40)))  // 0.3 * 40 = 12 rounds
        if (std::get<0>(key) == 1) {
            EXPECT_EQ(visits, 12);
        }
    for (std::int64_t epoch = 0; epoch < 10; ++epoch) expect_a_round(turns_of_epoch(plan, epoch), 0, table, 1);
}

TEST(SamplePlan, AFallingWeightEndsAtItsStepOfEachEpochAndTheRoundGoesOn) {
    PlanDataset falling{{{300, 1}}};
    falling.last_step_of_epoch = 160;
    const SamplePlan plan{{{{{600, 1}}}, falling}, 42, 1};
    const std::int64_t an_epoch = plan.batches_in(0);
    // A third of the steps at first, none at step 160: the integral of x/3 / (x/3 + 2/3) over x in 0 .. 1, 160 times.
    const double expected = 160 * (1 - 2 * std::log(1.5));
    EXPECT_NEAR(static_cast<double>(an_epoch - 600), expected, 2);
    std::int64_t early = 0;
    std::int64_t late = 0;
    for (const std::int64_t epoch : {0, 1, 2, 3, 1000}) {
        ASSERT_EQ(plan.batches_in(epoch), an_epoch) << epoch;
        const std::int64_t begin = plan.batches_before(epoch);
        for (std::int64_t i = 0; i < an_epoch; ++i) {
            if (plan.batch(begin + i).dataset != 1) continue;
            ASSERT_LT(i, 160);
            ++(i < 80 ? early : late);
        }
        expect_a_round(turns_of_epoch(plan, epoch), 0, {{600, 1}}, 1);
    }
    EXPECT_GT(early, 2 * late);
    // Its rounds go on from epoch to epoch: within the first round no sample comes twice.
    const std::int64_t epochs = 300 / (an_epoch - 600);
    std::int64_t seen = 0;
    for (const auto& [key, visits] : turns_of(plan, 0, plan.batches_before(epochs)))
        if (std::get<0>(key) == 1) {
            EXPECT_EQ(visits, 1);
            ++seen;
        }
    EXPECT_EQ(seen, epochs * (an_epoch - 600));
}

TEST(SamplePlan, FallingWeightsKeepSchedulesAndProbabilities) {
    Random random{5};
    const auto number = [&](std::uint64_t least, std::uint64_t most) {
        return static_cast<std::int64_t>(least + random.below(most - least + 1));
    };
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<PlanDataset> sets;
        for (std::int64_t i = number(1, 4); i > 0; --i) {
            PlanDataset set{{{number(1, 9), number(1, 3)}, {number(1, 30), 1}}};
            if (number(0, 2) == 0) set.probability = static_cast<double>(number(1, 10)) / 10;
            if (number(0, 2) == 0) set.start_epoch = number(1, 4);
            if (number(0, 3) == 0) set.end_epoch = set.start_epoch + number(0, 5);
            if (number(0, 3) == 0) set.start_step = number(0, 40);
            if (number(0, 3) == 0) set.end_step = std::max<std::int64_t>(1, set.start_step) + number(0, 40);
            if (number(0, 1) == 0) set.weight = static_cast<double>(number(1, 10)) / 10;
            if (number(0, 1) == 0) set.last_step_of_epoch = number(1, 40);
            if (number(0, 1) == 0) set.batch = number(1, 5);
            sets.push_back(set);
        }
        const SamplePlan plan{sets, 42, 3};
        const std::int64_t end = std::min<std::int64_t>(plan.size().value_or(300), 300);
        std::vector<Turns> rounds(sets.size());
        for (std::int64_t position = 0; position < end; ++position) {
            const GlobalBatch batch = plan.batch(position);
            const auto dataset = static_cast<std::size_t>(batch.dataset);
            const PlanDataset& set = sets[dataset];
            ASSERT_EQ(static_cast<std::int64_t>(batch.visits.size()), set.batch == 0 ? 3 : set.batch);
            const std::int64_t of_epoch = position - plan.batches_before(batch.epoch);
            ASSERT_GE(of_epoch, 0);
            ASSERT_LT(position, plan.batches_before(batch.epoch + 1));
            if (set.last_step_of_epoch > 0) {
                ASSERT_LT(of_epoch, set.last_step_of_epoch) << trial;
            }
            ASSERT_GE(batch.epoch + 1, set.start_epoch);
            ASSERT_TRUE(set.end_epoch == 0 || batch.epoch + 1 <= set.end_epoch);
            ASSERT_GE(position + 1, set.start_step);
            ASSERT_TRUE(set.end_step == 0 || position + 1 <= set.end_step);
        }
    }
}

}  // namespace
