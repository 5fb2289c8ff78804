#include <strata/train/turn_plan.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace {

using strata::train::TurnPlan;
using Saved = std::vector<std::vector<std::int64_t>>;

TEST(TurnPlan, TrainersComeInTheirOrderWithAllTheirSteps) {
    const TurnPlan plan{{3, 1}};
    std::vector<std::size_t> order;
    for (std::int64_t position = 0; position < 8; ++position) order.push_back(plan.whose(position));
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 0, 0, 1, 0, 0, 0, 1}));
}

TEST(TurnPlan, APositionSaysWhatEachHasDone) {
    const TurnPlan plan{{3, 1, 2}};
    std::vector<std::int64_t> done(3, 0);
    for (std::int64_t position = 0; position < 40; ++position) {
        for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(plan.done(i, position), done[i]) << position << ' ' << i;
        ++done[plan.whose(position)];
    }
}

TEST(TurnPlan, TheNewestCommonMomentIsFoundWhateverWasSavedAfterIt) {
    const TurnPlan plan{{2, 1}};
    EXPECT_EQ(plan.newest_common(Saved{{4, 8}, {2, 4}}, 1000), 12);
    EXPECT_EQ(plan.newest_common(Saved{{4, 8, 9}, {2, 4}}, 1000), 13) << "in the middle of a turn";
    EXPECT_EQ(plan.newest_common(Saved{{4, 8}, {2, 3}}, 1000), 11) << "before the other's turn";
    EXPECT_EQ(plan.newest_common(Saved{{4, 8, 12}, {2}}, 1000), 6) << "8 and 12 are alone";
    EXPECT_EQ(plan.newest_common(Saved{{4, 8}, {2, 4}}, 12), 6) << "before";
}

TEST(TurnPlan, ATrainerWithoutAStepNeedsNoCheckpoint) {
    const TurnPlan plan{{2, 1}};
    EXPECT_EQ(plan.newest_common(Saved{{1}, {}}, 1000), 1);
    EXPECT_EQ(plan.newest_common(Saved{{2}, {}}, 1000), 2);
}

TEST(TurnPlan, WhereNothingIsOfOneMomentThereIsNone) {
    const TurnPlan plan{{2, 1}};
    EXPECT_EQ(plan.newest_common(Saved{{8}, {}}, 1000), std::nullopt);
    EXPECT_EQ(plan.newest_common(Saved{{8}, {2}}, 1000), std::nullopt);
    EXPECT_EQ(plan.newest_common(Saved{{4}, {2}}, 6), std::nullopt);
}

}  // namespace
