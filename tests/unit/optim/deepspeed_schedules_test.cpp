// DeepSpeed's learning rates against values of its own schedulers; its `it` is our step - 1.

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/options/deepspeed_schedules.hpp>
#include <strata/options/schedule.hpp>

namespace {

using strata::optim::LrRangeTest;
using strata::optim::OneCycle;
using strata::optim::Schedule;
using strata::optim::WarmupCosineLr;
using strata::optim::WarmupCurve;
using strata::optim::WarmupDecayLr;
using strata::optim::WarmupLr;

using Points = std::vector<std::pair<std::int64_t, double>>;

template <class Rate>
void expect_at(const Rate& rate, const Points& its, double tolerance = 1e-15) {
    for (const auto& [it, lr] : its) EXPECT_NEAR(rate.at(it + 1), lr, tolerance) << "it " << it;
}

TEST(DeepspeedSchedules, WarmupLrIsDeepSpeeds) {
    expect_at(WarmupLr{.min_lr = 0.0, .max_lr = 1e-4, .warmup_steps = 500},
              {{-1, 0.0},
               {0, 0.0},
               {1, 1.1153513939775647e-05},
               {2, 1.7677901345815084e-05},
               {10, 3.8584818782171724e-05},
               {99, 7.410234262651711e-05},
               {100, 7.426245458684643e-05},
               {250, 8.891072215051862e-05},
               {498, 9.996778553628859e-05},
               {499, 1e-4},
               {5000, 1e-4}},
              1e-18);
    expect_at(WarmupLr{.min_lr = 0.1, .max_lr = 0.2, .warmup_steps = 10}, {{-1, 0.1},
                                                                           {0, 0.1},
                                                                           {1, 0.13010299956639812},
                                                                           {2, 0.14771212547196624},
                                                                           {3, 0.16020599913279623},
                                                                           {4, 0.16989700043360187},
                                                                           {5, 0.17781512503836436},
                                                                           {6, 0.1845098040014257},
                                                                           {7, 0.19030899869919435},
                                                                           {8, 0.19542425094393248},
                                                                           {9, 0.2},
                                                                           {10, 0.2}});
    expect_at(WarmupLr{.min_lr = 0.1, .max_lr = 0.2, .warmup_steps = 10, .curve = WarmupCurve::linear},
              {{-1, 0.1}, {0, 0.1}, {1, 0.11}, {9, 0.19}, {10, 0.2}, {11, 0.2}});
    expect_at(WarmupLr{.max_lr = 1.0, .warmup_steps = 1}, {{0, 0.0}, {1, 1.0}, {2, 1.0}});
}

TEST(DeepspeedSchedules, WarmupDecayLrIsDeepSpeeds) {
    expect_at(WarmupDecayLr{.min_lr = 0.1, .max_lr = 0.2, .warmup_steps = 10, .total_steps = 20},
              {{-1, 0.1},
               {0, 0.1},
               {1, 0.13010299956639812},
               {9, 0.2},
               {10, 0.2},
               {11, 0.19},
               {15, 0.15},
               {19, 0.11},
               {20, 0.1},
               {25, 0.1}});
}

TEST(DeepspeedSchedules, WarmupCosineLrIsItsFormula) {
    const WarmupCosineLr rate{.lr = 2.0,
                              .warmup_min_ratio = 0.2,
                              .cos_min_ratio = 0.1,
                              .warmup_steps = 4,
                              .total_steps = 12,
                              .curve = WarmupCurve::linear};
    const double pi = std::acos(-1.0);
    expect_at(rate,
              {{-1, 0.0},
               {0, 0.4},
               {1, 0.8},
               {3, 1.6},
               {4, 2 * (0.1 + 0.9 * (1 + std::cos(pi / 8)) / 2)},
               {7, 2 * (0.1 + 0.9 * 0.5)},
               {11, 0.2},
               {12, 0.2},
               {100, 0.2}},
              1e-12);
    EXPECT_NEAR((WarmupCosineLr{.lr = 1.0, .warmup_steps = 10}.at(2)), std::log10(2.0), 1e-15) << "log by default";
}

TEST(DeepspeedSchedules, OneCycleRisesFallsAndDecays) {
    const OneCycle rate{.min_lr = 1.0,
                        .max_lr = 5.0,
                        .decay_lr_rate = 0.5,
                        .first_steps = 4,
                        .second_steps = 8,
                        .decay_steps = 2,
                        .decay_momentum_rate = 0.1};
    const std::vector<double> lrs{1, 2, 3, 4, 5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5, 1, 1 / 1.25, 1 / 1.5};
    for (std::size_t step = 0; step < lrs.size(); ++step) {
        EXPECT_NEAR(rate.at(static_cast<std::int64_t>(step)), lrs[step], 1e-12) << step;
    }
    EXPECT_NEAR(rate.momentum_at(0), 0.9, 1e-12);
    EXPECT_NEAR(rate.momentum_at(4), 0.8, 1e-12);
    EXPECT_NEAR(rate.momentum_at(8), 0.85, 1e-12);
    EXPECT_NEAR(rate.momentum_at(14), 0.9 * 1.1, 1e-12);
    const OneCycle stairs{.min_lr = 0.0, .max_lr = 1.0, .first_steps = 4, .first_stairs = 2};
    for (const auto& [step, lr] :
         Points{{0, 0}, {1, 0}, {2, 0.5}, {3, 0.5}, {4, 1}, {5, 0.5}, {6, 0.5}, {7, 0}, {8, 0}, {99, 0}}) {
        EXPECT_EQ(stairs.at(step), lr) << step;
    }
}

TEST(DeepspeedSchedules, LrRangeTestRisesForEver) {
    const LrRangeTest slope{.min_lr = 0.5, .step_size = 4, .step_rate = 2.0};
    expect_at(slope, {{-1, 0.5}, {0, 0.75}, {3, 1.5}, {399, 100.5}});
    const LrRangeTest stairs{.min_lr = 0.5, .step_size = 4, .step_rate = 2.0, .staircase = true};
    expect_at(stairs, {{-1, 0.5}, {2, 0.5}, {3, 1.5}, {6, 1.5}, {7, 2.5}});
}

TEST(DeepspeedSchedules, ATrainersScheduleCanBeOneOfThem) {
    const Schedule schedule = Schedule::of(WarmupLr{.min_lr = 0.1, .max_lr = 0.2, .warmup_steps = 10});
    EXPECT_EQ(schedule.at(0), 0.1);
    EXPECT_EQ(schedule.at(10), 0.2);
}

}  // namespace
