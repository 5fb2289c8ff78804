#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/random.hpp>
#include <strata/datasets/epoch_phases.hpp>

namespace {

using namespace strata::datasets;
using Counts = std::vector<std::int64_t>;

TEST(EpochPhases, WeightsInProportionToBatchesAreOnePhase) {
    const auto phases = epoch_phases({{30, 30}, {7, 7}, {1000, 1000}, {1, 1}});
    ASSERT_EQ(phases.size(), 1U);
    EXPECT_EQ(phases[0].steps, 1038);
    EXPECT_EQ(phases[0].counts, (Counts{30, 7, 1000, 1}));
    EXPECT_TRUE(epoch_phases({}).empty());
    EXPECT_TRUE(epoch_phases({{0, 1}, {0, 1, 5}}).empty());
}

TEST(EpochPhases, APhaseEndsWhereADataSetIsUsedUp) {
    const auto phases = epoch_phases({{100, 1}, {1000, 1}, {50, 0.25}});
    ASSERT_EQ(phases.size(), 3U);
    EXPECT_EQ(phases[0].counts, (Counts{100, 100, 25}));
    EXPECT_EQ(phases[1].counts, (Counts{0, 100, 25}));
    EXPECT_EQ(phases[2].counts, (Counts{0, 800, 0}));
}

TEST(EpochPhases, AFallingWeightIsDealtInEqualPartsOfItsTime) {
    const auto phases = epoch_phases({{10000, 1}, {10000, 1, 1600}});
    ASSERT_EQ(phases.size(), 17U);
    double before = 51;
    for (std::size_t p = 0; p < 16; ++p) {
        EXPECT_EQ(phases[p].steps, 100);
        const double weight = 1 - (static_cast<double>(p) + 0.5) / 16;
        const auto drawn = static_cast<double>(phases[p].counts[1]);
        EXPECT_NEAR(drawn, 100 * weight / (1 + weight), 1.01) << p;
        EXPECT_LE(drawn, before);
        before = drawn + 1;
    }
    EXPECT_EQ(phases[16].counts[1], 0);
}

TEST(EpochPhases, ADataSetWhoseWeightFallsHasAtLeastOneStepAndNoneBehindItsLast) {
    const auto rare = epoch_phases({{1000000, 1000000}, {5, 5, 40}});
    std::int64_t steps = 0;
    std::int64_t shown = 0;
    for (const EpochPhase& phase : rare) {
        if (phase.counts[1] > 0) {
            EXPECT_LE(steps + phase.steps, 40);
        }
        shown += phase.counts[1];
        steps += phase.steps;
    }
    EXPECT_EQ(shown, 1);
    EXPECT_EQ(steps, 1000001);
    const auto alone = epoch_phases({{5, 5, 3}});  // all three steps are its own
    EXPECT_EQ(std::accumulate(alone.begin(), alone.end(), std::int64_t{0},
                              [](std::int64_t sum, const EpochPhase& phase) { return sum + phase.counts[0]; }),
              3);
}

/// What must hold whatever the numbers are.
TEST(EpochPhases, NothingIsLostOrShownTooOften) {
    strata::core::Random random{11};
    for (int trial = 0; trial < 2000; ++trial) {
        std::vector<EpochShare> shares;
        for (std::uint64_t i = 1 + random.below(6); i > 0; --i) {
            EpochShare share{static_cast<std::int64_t>(random.below(2) == 0 ? random.below(4) : random.below(5000)),
                             static_cast<double>(1 + random.below(1000)) / 100};
            if (random.below(3) == 0) share.last_step = static_cast<std::int64_t>(1 + random.below(300));
            shares.push_back(share);
        }
        Counts shown(shares.size(), 0);
        std::int64_t steps = 0;
        const auto phases = epoch_phases(shares);
        ASSERT_LE(phases.size(), 2 * (1 + shares.size()) + fall_phases * shares.size());
        for (const EpochPhase& phase : phases) {
            ASSERT_GT(phase.steps, 0);
            ASSERT_EQ(std::accumulate(phase.counts.begin(), phase.counts.end(), std::int64_t{0}), phase.steps);
            steps += phase.steps;
            for (std::size_t i = 0; i < shares.size(); ++i) {
                ASSERT_GE(phase.counts[i], 0);
                shown[i] += phase.counts[i];
                if (phase.counts[i] > 0 && shares[i].last_step > 0) {
                    ASSERT_LE(steps, shares[i].last_step) << trial;
                }
            }
        }
        for (std::size_t i = 0; i < shares.size(); ++i) {
            ASSERT_LE(shown[i], shares[i].batches);
            if (shares[i].last_step == 0) {
                ASSERT_EQ(shown[i], shares[i].batches) << trial;
            }
        }
    }
}

}  // namespace
