// Solvers where the answer is known: data that are one picture, or normally distributed, with their ideal denoisers.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/diffusion/step_plan.hpp>

namespace {

using namespace strata::diffusion;
using strata::Errc;
using strata::Error;

const auto no_noise = [](std::size_t) { return 0.0; };
const auto nothing = [](std::size_t, double, double) {};

/// Numbers that are normally distributed, what the ideal denoiser says of them, and where their probability flow leads:
/// a sample keeps its distance from the mean, in deviations.
struct Normal {
    double mean = 0.8;
    double deviation = 0.35;
    [[nodiscard]] double variance_at(Level level) const {
        return level.alpha * level.alpha * deviation * deviation + level.sigma * level.sigma;
    }
    [[nodiscard]] double picture(double x, Level level) const {
        return mean + level.alpha * deviation * deviation / variance_at(level) * (x - level.alpha * mean);
    }
    [[nodiscard]] double flown(double x, Level from, Level to) const {
        return to.alpha * mean + std::sqrt(variance_at(to) / variance_at(from)) * (x - from.alpha * mean);
    }
};

double carried(const StepPlan& plan, const Path& path, const Normal& data, double x) {
    return carry_out(
        plan, x, [&](std::size_t i, double at) { return data.picture(at, path.levels[i]); }, no_noise, nothing);
}

/// n steps that are even in log_ratio, between two ends of which neither is noise alone or without.
Path even_path(int n, double from = -2.5, double to = 2.5) {
    Path path;
    for (int i = 0; i <= n; ++i) {
        const double ratio = std::exp(-(from + (to - from) * i / n));
        const double alpha = 1 / std::sqrt(1 + ratio * ratio);
        path.levels.push_back({alpha, alpha * ratio});
        if (i < n) path.timesteps.push_back(n - i);
    }
    return path;
}

/// The order in which the error falls from n to 2n steps.
double order_of(SolverOptions options, int n) {
    const Normal data;
    options.lower_order_final = false;
    const auto error = [&](int steps) {
        const Path path = even_path(steps);
        const double x = path.levels[0].alpha * data.mean + 1.3;
        return std::abs(carried(plan_of(path, options), path, data, x) -
                        data.flown(x, path.levels.front(), path.levels.back()));
    };
    return std::log2(error(n) / error(2 * n));
}

TEST(Solvers, ErrorsFallAsTheirOrderSays) {
    EXPECT_NEAR(order_of({.solver = Solver::euler}, 80), 1, 0.1);
    EXPECT_NEAR(order_of({.solver = Solver::ddim}, 80), 1, 0.1);
    EXPECT_NEAR(order_of({.solver = Solver::dpm_solver_2m, .order = 1}, 80), 1, 0.1);
    for (const auto term : {MultistepTerm::midpoint, MultistepTerm::heun})
        EXPECT_NEAR(order_of({.solver = Solver::dpm_solver_2m, .term = term}, 80), 2, 0.25);
    for (const auto b : {UniPcB::bh1, UniPcB::bh2}) {  // a correction is worth one order
        EXPECT_NEAR(order_of({.solver = Solver::unipc, .order = 1, .b = b}, 80), 2, 0.25);
        EXPECT_NEAR(order_of({.solver = Solver::unipc, .order = 2, .b = b}, 80), 3, 0.35);
        EXPECT_GT(order_of({.solver = Solver::unipc, .order = 3, .b = b}, 80),
                  2.6);  // its first step is of lower order
    }
}

TEST(Solvers, HigherOrdersAreNearerAtFewSteps) {
    const Normal data;
    const Path path = even_path(10);
    const auto error = [&](const SolverOptions& options) {
        return std::abs(carried(plan_of(path, options), path, data, 0.9) -
                        data.flown(0.9, path.levels.front(), path.levels.back()));
    };
    const double euler = error({.solver = Solver::euler});
    EXPECT_LT(error({.solver = Solver::dpm_solver_2m, .lower_order_final = false}), euler / 2);
    EXPECT_LT(error({.solver = Solver::unipc}), euler / 2);
    EXPECT_LT(error({.solver = Solver::unipc, .b = UniPcB::bh1}), euler / 2);
}

std::vector<SolverOptions> every_solver() {
    return {{.solver = Solver::euler},
            {.solver = Solver::ddim},
            {.solver = Solver::dpm_solver_2m},
            {.solver = Solver::dpm_solver_2m, .lower_order_final = false, .term = MultistepTerm::heun},
            {.solver = Solver::unipc, .order = 1},
            {.solver = Solver::unipc, .b = UniPcB::bh1},
            {.solver = Solver::unipc, .order = 3},
            {.solver = Solver::unipc, .order = 3, .lower_order_final = false}};
}

TEST(Solvers, OnePictureIsFoundInAnyNumberOfSteps) {
    const Normal data{.mean = -0.4, .deviation = 0};
    for (SolverOptions options : every_solver())
        for (const int steps : {1, 2, 7, 30}) {
            options.steps = steps;
            const Path ddpm = path_of(DdpmSchedule{}, options);
            EXPECT_NEAR(carried(plan_of(ddpm, options), ddpm, data, 1.7), -0.4, 1e-12)
                << name_of(options.solver) << steps;
            const Path flow = path_of(FlowSchedule{}, options, 1024);
            EXPECT_NEAR(carried(plan_of(flow, options), flow, data, 1.7), -0.4, 1e-12)
                << name_of(options.solver) << steps;
        }
}

TEST(Solvers, EveryPathLeadsToTheDataWhereverItBegins) {
    const Normal data;
    const DdpmSchedule schedules[] = {DdpmSchedule{}, DdpmSchedule{DdpmScheduleOptions{.zero_terminal_snr = true}}};
    for (SolverOptions options : every_solver()) {
        options.steps = 400;
        for (const auto spacing : {Spacing::leading, Spacing::trailing, Spacing::linspace}) {
            options.spacing = spacing;
            for (const DdpmSchedule& schedule : schedules) {
                const Path path = path_of(schedule, options);
                const double x = path.start * 0.6;
                const double end = data.flown(x, path.levels.front(), {1, 0});
                EXPECT_NEAR(carried(plan_of(path, options), path, data, x), end, 0.006)
                    << name_of(options.solver) << " " << static_cast<int>(spacing);
            }
        }
        const Path flow = path_of(FlowSchedule{}, options, 4096);
        EXPECT_EQ(flow.levels.front(), (Level{0, 1}));
        EXPECT_NEAR(carried(plan_of(flow, options), flow, data, 0.6), data.flown(0.6, {0, 1}, {1, 0}), 0.006)
            << name_of(options.solver);
    }
}

TEST(Solvers, DdimIsEulersStepWherePicturesHaveSizeOne) {
    // x / alpha moves along the noise by the difference of sigma / alpha (Song et al. 2020, eq. 13).
    const Level from{0.6, 0.8}, to{0.8, 0.6};
    const Path path{{1}, {from, to}};
    const Combination step = plan_of(path, {.solver = Solver::ddim}).steps[0].advance;
    const double x = 0.37, noise = -1.2;
    const double picture = (x - from.sigma * noise) / from.alpha;
    const double euler = x / from.alpha + (to.sigma / to.alpha - from.sigma / from.alpha) * noise;
    EXPECT_NEAR(step.of_sample * x + step.of_pictures[0] * picture, euler * to.alpha, 1e-15);
}

TEST(Solvers, EulerOfAFlowFollowsTheVelocity) {
    const Path path{{700}, {{0.3, 0.7}, {0.45, 0.55}}};
    const Combination step = plan_of(path, {.solver = Solver::euler}).steps[0].advance;
    const double x = 0.37, velocity = -1.2;
    EXPECT_NEAR(step.of_sample * x + step.of_pictures[0] * (x - 0.7 * velocity), x + (0.55 - 0.7) * velocity, 1e-15);
}

TEST(Solvers, EtaOneIsTheAncestralStepOfDdpm) {
    // Ho et al. 2020, eq. 7: the posterior of x at the level before, given x and the picture.
    const double product = 0.3, before = 0.34, beta = 1 - product / before;
    const Path path{{500}, {{std::sqrt(product), std::sqrt(1 - product)}, {std::sqrt(before), std::sqrt(1 - before)}}};
    const PlannedStep step = plan_of(path, {.solver = Solver::ddim, .eta = 1}).steps[0];
    EXPECT_NEAR(step.advance.of_pictures[0], std::sqrt(before) * beta / (1 - product), 1e-14);
    EXPECT_NEAR(step.advance.of_sample, std::sqrt(1 - beta) * (1 - before) / (1 - product), 1e-14);
    EXPECT_NEAR(step.fresh_noise * step.fresh_noise, (1 - before) / (1 - product) * beta, 1e-14);
    EXPECT_TRUE(plan_of(path, {.solver = Solver::euler, .eta = 0.5}).draws_noise());
    EXPECT_FALSE(plan_of(path, {.solver = Solver::euler}).draws_noise());
}

TEST(Solvers, DpmSolverIsTheFormulaOfItsPaper) {
    // Lu et al. 2022, algorithm 2, as it is printed.
    const Path path = even_path(5);
    const StepPlan plan = plan_of(path, {.solver = Solver::dpm_solver_2m, .lower_order_final = false});
    const auto lambda = [&](std::size_t i) { return path.levels[i].log_ratio(); };
    const double x = 0.4, picture = 0.9, older = -0.2;
    const double h = lambda(3) - lambda(2), r = (lambda(2) - lambda(1)) / h;
    const double d = (1 + 1 / (2 * r)) * picture - 1 / (2 * r) * older;
    const double expected =
        path.levels[3].sigma / path.levels[2].sigma * x - path.levels[3].alpha * (std::exp(-h) - 1) * d;
    const Combination& step = plan.steps[2].advance;
    EXPECT_NEAR(step.of_sample * x + step.of_pictures[0] * picture + step.of_pictures[1] * older, expected, 1e-14);
}

TEST(Solvers, UniPcOfOrderOnePredictsAsDdimAndCorrectsWithHalfTheDifference) {
    const Path path = even_path(6);
    const StepPlan unipc = plan_of(path, {.solver = Solver::unipc, .order = 1});
    const StepPlan ddim = plan_of(path, {.solver = Solver::ddim});
    EXPECT_FALSE(unipc.steps[0].correct);
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_NEAR(unipc.steps[i].advance.of_sample, ddim.steps[i].advance.of_sample, 1e-15);
        EXPECT_NEAR(unipc.steps[i].advance.of_pictures[0], ddim.steps[i].advance.of_pictures[0], 1e-15);
    }
    // Zhao et al. 2023, eq. 3 with p = 1 and B(h) = e^h - 1, of data prediction.
    const double h = path.levels[3].log_ratio() - path.levels[2].log_ratio();
    const double half = -path.levels[3].alpha * (std::exp(-h) - 1) / 2;
    ASSERT_TRUE(unipc.steps[3].correct);
    EXPECT_NEAR(unipc.steps[3].correct->of_pictures[0], half, 1e-15);
    EXPECT_NEAR(unipc.steps[3].correct->of_pictures[1], ddim.steps[2].advance.of_pictures[0] - half, 1e-15);
}

TEST(Solvers, UniPcSystemIsSolvedToThePolynomialsThatItIsExactFor) {
    // A picture that is a polynomial of the log_ratio, below the order, is integrated exactly by the correction.
    const Path path = even_path(6);
    const StepPlan plan = plan_of(path, {.solver = Solver::unipc, .order = 3, .lower_order_final = false});
    const auto lambda = [&](std::size_t i) { return path.levels[i].log_ratio(); };
    const std::function<double(double)> polynomials[] = {[](double l) { return l; }, [](double l) { return l * l; },
                                                         [](double l) { return l * l * l; }};
    for (const auto& picture : polynomials) {
        // x' = sigma' / sigma x + sigma' * integral of e^l picture(l) from lambda(3) to lambda(4).
        double integral = 0;
        const int parts = 20000;
        const double width = (lambda(4) - lambda(3)) / parts;
        for (int k = 0; k < parts; ++k) {
            const double l = lambda(3) + (k + 0.5) * width;
            integral += std::exp(l) * picture(l) * width;
        }
        const Combination& step = *plan.steps[4].correct;
        double ours = 0;
        for (std::size_t k = 0; k < step.of_pictures.size(); ++k) ours += step.of_pictures[k] * picture(lambda(4 - k));
        EXPECT_NEAR(ours, path.levels[4].sigma * integral, 1e-8);
    }
}

TEST(Solvers, LastStepsAreOfLowerOrder) {
    const Path path = path_of(DdpmSchedule{}, {.solver = Solver::unipc, .steps = 8});
    const StepPlan plan = plan_of(path, {.solver = Solver::unipc, .order = 3});
    std::vector<std::size_t> orders;
    for (const PlannedStep& step : plan.steps) orders.push_back(step.advance.of_pictures.size());
    EXPECT_EQ(orders, (std::vector<std::size_t>{1, 2, 3, 3, 3, 3, 2, 1}));
    EXPECT_EQ(plan.pictures, 4U);                       // a correction knows one more
    EXPECT_EQ(plan.steps.back().advance.of_sample, 0);  // what ends without noise is the picture itself
    EXPECT_EQ(plan.steps.back().advance.of_pictures[0], 1);
}

TEST(Solvers, OrdersThatASolverDoesNotHaveAreRefused) {
    const Path path = even_path(4);
    const auto refused = [&](const SolverOptions& options) {
        try {
            (void)plan_of(path, options);
        } catch (const Error& error) {
            return error.code();
        }
        return Errc{};
    };
    EXPECT_EQ(refused({.solver = Solver::dpm_solver_2m, .order = 3}), Errc::bad_diffusion_options);
    EXPECT_EQ(refused({.solver = Solver::unipc, .order = 4}), Errc::bad_diffusion_options);
    EXPECT_EQ(refused({.solver = Solver::unipc, .order = 3}), Errc{});
    EXPECT_EQ(refused({.solver = Solver::ddim, .eta = 1.5}), Errc::bad_diffusion_options);
    EXPECT_EQ(refused({.solver = Solver::ddim, .clip = -1}), Errc::bad_diffusion_options);
    for (const auto solver : {Solver::euler, Solver::ddim, Solver::dpm_solver_2m, Solver::unipc})
        EXPECT_EQ(solver_of(name_of(solver)), solver);
}

}  // namespace
