// What a model is shown while it is trained, and how its answers are judged.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <strata/core/error.hpp>
#include <strata/diffusion/objective.hpp>

#include "../../support/refused.hpp"
#include "golden_tensors.hpp"

namespace {

using namespace strata::diffusion;
using nlohmann::json;
using strata::Errc;
using strata_test::distance;
using strata_test::refused;
using strata_test::tensor_of;

TEST(Objective, NoiseAndTargetsOfDdpmAreTheirs) {
    if (!std::filesystem::exists(strata_test::golden_file("sched_ddpm_euler")))
        GTEST_SKIP() << strata_test::golden_file("sched_ddpm_euler") << " is not there";
    const json golden = strata_test::read_golden("sched_ddpm_euler")["add_noise"];
    const at::Tensor x = tensor_of(golden["sample"]), noise = tensor_of(golden["noise"]);
    const auto timesteps = golden["timesteps"].get<std::vector<std::int64_t>>();
    const Noised epsilon = DdpmObjective{}.at(x, noise, timesteps);
    EXPECT_LT(distance(epsilon.input, tensor_of(golden["noisy"])), 1e-6);
    EXPECT_TRUE(at::equal(epsilon.target, noise));
    EXPECT_EQ(epsilon.timestep_B[2].item<float>(), static_cast<float>(timesteps[2]));
    const DdpmObjective v{DdpmSchedule{}, {.prediction = Prediction::v}};
    EXPECT_LT(distance(v.at(x, noise, timesteps).target, tensor_of(golden["velocity (v target)"])), 1e-6);
}

TEST(Objective, NoiseAndTargetsOfFlowsAreTheirs) {
    if (!std::filesystem::exists(strata_test::golden_file("sched_flow_match")))
        GTEST_SKIP() << strata_test::golden_file("sched_flow_match") << " is not there";
    const json file = strata_test::read_golden("sched_flow_match");
    const json& golden = file["scale_noise"];
    std::vector<double> sigmas;
    for (const double timestep : strata_test::numbers(golden["timestep"])) sigmas.push_back(timestep / 1000);
    const Noised flow = FlowObjective{}.at(tensor_of(golden["sample"]), tensor_of(golden["noise"]), sigmas);
    EXPECT_LT(distance(flow.input, tensor_of(golden["out"])), 1e-6);
    EXPECT_LT(distance(flow.target, tensor_of(golden["target"])), 1e-6);
    EXPECT_EQ(flow.timestep_B[0].item<float>(), 900.0f);

    for (const json& entry : file["density"]) {  // which entry of the table a random number chooses
        if (!entry.contains("timestep (flux_dev table)")) continue;
        FlowObjectiveOptions options;
        options.density = {DensityShape::logit_normal, entry["logit_mean"], entry["logit_std"]};
        const FlowObjective objective{FlowSchedule{}, options};
        const auto z = strata_test::numbers(entry["standard_normal_z"]);
        const auto timesteps = strata_test::numbers(entry["timestep (flux_dev table)"]);
        for (std::size_t i = 0; i < z.size(); ++i) EXPECT_NEAR(objective.sigma_of(z[i], 0) * 1000, timesteps[i], 1e-3);
    }
}

TEST(Objective, TheSameSourceGivesTheSameStep) {
    const at::Tensor x = at::randn({3, 4, 2, 2});
    const FlowObjective flow;
    const DdpmObjective ddpm;
    const auto same = [](const Noised& one, const Noised& other) {
        return at::equal(one.input, other.input) && at::equal(one.target, other.target) &&
               at::equal(one.timestep_B, other.timestep_B);
    };
    EXPECT_TRUE(same(flow.draw(x, NoiseSource::seeded(5), 256), flow.draw(x, NoiseSource::seeded(5), 256)));
    EXPECT_FALSE(same(flow.draw(x, NoiseSource::seeded(5), 256), flow.draw(x, NoiseSource::seeded(6), 256)));
    EXPECT_TRUE(same(ddpm.draw(x, NoiseSource::seeded(5)), ddpm.draw(x, NoiseSource::seeded(5))));
    at::manual_seed(3);
    const Noised first = flow.draw(x, NoiseSource::of_process(), 256);
    EXPECT_FALSE(same(first, flow.draw(x, NoiseSource::of_process(), 256)));
    at::manual_seed(3);
    EXPECT_TRUE(same(first, flow.draw(x, NoiseSource::of_process(), 256)));
}

TEST(Objective, APictureIsEvaluatedAlikeInAnyBatch) {
    const at::Tensor x = at::randn({3, 4, 2, 2});
    const DdpmObjective objective{DdpmSchedule{}, {.noise = {.offset = 0.1, .perturbation = 0.1}}};
    const Noised all = objective.draw(x, NoiseSource::of_pictures(x));
    const at::Tensor other_batch = at::cat({x.narrow(0, 2, 1), x.narrow(0, 1, 1)});
    const Noised some = objective.draw(other_batch, NoiseSource::of_pictures(other_batch));
    EXPECT_TRUE(at::equal(some.input[0], all.input[2]));
    EXPECT_TRUE(at::equal(some.input[1], all.input[1]));
    EXPECT_TRUE(at::equal(some.timestep_B[0], all.timestep_B[2]));
    EXPECT_FALSE(at::equal(all.target[0], all.target[1]));
    const at::Tensor alone = x.narrow(0, 2, 1);
    EXPECT_TRUE(at::equal(objective.draw(alone, NoiseSource::of_pictures(alone)).input[0], all.input[2]));
}

TEST(Objective, TimestepsAreUniformInTheirRange) {
    const at::Tensor x = at::zeros({20000, 1});
    const DdpmObjective objective{DdpmSchedule{}, {.least_timestep = 200, .most_timestep = 299}};
    const at::Tensor timesteps = objective.draw(x, NoiseSource::seeded(1)).timestep_B;
    EXPECT_EQ(timesteps.min().item<float>(), 200);
    EXPECT_EQ(timesteps.max().item<float>(), 299);
    EXPECT_NEAR(timesteps.mean().item<double>(), 249.5, 1);
    EXPECT_NEAR(timesteps.std().item<double>(), 100 / std::sqrt(12.0), 0.5);
    EXPECT_TRUE(at::equal(timesteps, timesteps.floor()));
}

TEST(Objective, SigmasOfAFlowHaveTheirMedianAndTheirShift) {
    const at::Tensor x = at::zeros({20001, 1});
    const auto median = [&](FlowObjectiveOptions options, std::int64_t tokens) {
        return FlowObjective{FlowSchedule{}, options}
            .draw(x, NoiseSource::seeded(2), tokens)
            .sigma_B.median()
            .item<double>();
    };
    EXPECT_NEAR(median({.from_table = false}, 256), 0.5, 0.01);
    EXPECT_NEAR(median({.density = {.mean = 0.8}, .from_table = false}, 256), 1 / (1 + std::exp(-0.8)), 0.01);
    EXPECT_NEAR(median({.density = {.mean = 0.8}}, 256), 1 / (1 + std::exp(0.8)),
                0.01);  // the table runs the other way
    EXPECT_NEAR(median({.from_table = false, .shift = 3}, 256), 0.75, 0.01);
    EXPECT_NEAR(median({.shift_by_tokens = true}, 4096), time_shifted(0.5, 1.15, TimeShift::exponential), 0.01);
    EXPECT_NEAR(median({.density = {.shape = DensityShape::uniform}}, 256), 0.5, 0.01);
    EXPECT_NEAR(median({.density = {.shape = DensityShape::cosmap}}, 256), 0.5, 0.01);
}

TEST(Objective, OffsetMovesTheMeanOfAChannelAndPerturbationTheInputOnly) {
    const at::Tensor x = at::zeros({4000, 2, 4, 4});
    const at::Tensor noise =
        DdpmObjective{DdpmSchedule{}, {.noise = {.offset = 0.5}}}.draw(x, NoiseSource::seeded(1)).target;
    // 16 numbers a channel: their mean has variance 1 / 16, and 0.25 more of the offset.
    EXPECT_NEAR(noise.mean({2, 3}).square().mean().item<double>(), 1.0 / 16 + 0.25, 0.01);

    const at::Tensor quarter = DdpmObjective{DdpmSchedule{}, {.noise = {.offset = 8, .offset_probability = 0.25}}}
                                   .draw(x, NoiseSource::seeded(1))
                                   .target.mean({2, 3})
                                   .square()
                                   .mean(1);
    EXPECT_NEAR(quarter.gt(2).to(at::kFloat).mean().item<double>(), 0.25, 0.03) << "whole pictures, and one in four";

    const DdpmObjectiveOptions options{.noise = {.perturbation = 0.5}, .least_timestep = 999};
    const Noised noised = DdpmObjective{DdpmSchedule{}, options}.draw(x, NoiseSource::seeded(1));
    EXPECT_NEAR(noised.target.square().mean().item<double>(), 1, 0.02);
    const double sigma = DdpmSchedule{}.level(999).sigma;
    EXPECT_NEAR(noised.input.square().mean().item<double>() / (sigma * sigma), 1.25, 0.02);
}

TEST(Objective, LossIsTheMeanOfWeightedErrors) {
    const at::Tensor x = at::randn({2, 3, 2, 2}), noise = at::randn({2, 3, 2, 2});
    const DdpmSchedule schedule;
    const DdpmObjective objective{schedule, {.prediction = Prediction::v, .min_snr_gamma = 5}};
    const Noised noised = objective.at(x, noise, {3, 700});
    double expected = 0;
    for (const int i : {0, 1}) {
        const double error = (noised.target[i] * 2 - noised.target[i]).square().mean().item<double>();
        expected += min_snr_weight(Prediction::v, schedule.level(i == 0 ? 3 : 700), 5) * error / 2;
    }
    EXPECT_NEAR(noised.loss(noised.target * 2).item<double>(), expected, 1e-6 * expected);
    EXPECT_EQ(noised.loss(noised.target).item<double>(), 0);
    const Noised plain = DdpmObjective{}.at(x, noise, {3, 700});
    EXPECT_NEAR(plain.loss(at::zeros_like(x)).item<double>(), noise.square().mean().item<double>(), 1e-6);

    const Noised flow =
        FlowObjective{FlowSchedule{}, {.weighting = FlowWeighting::sigma_sqrt}}.at(x, noise, {0.5, 0.1});
    EXPECT_NEAR(flow.weight_B[0].item<double>(), 4, 1e-5);
    EXPECT_NEAR(flow.weight_B[1].item<double>(), 100, 1e-3);
}

TEST(Objective, TrainsAsItsPageShows) {
    namespace diffusion = strata::diffusion;
    const FlowSchedule schedule;
    const at::Tensor latents = at::randn({2, 4, 8, 8});
    const std::int64_t tokens = 16;
    const auto model = [](const at::Tensor& x, const at::Tensor&) { return at::zeros_like(x); };
    //! [train]
    const diffusion::FlowObjective objective{schedule, {.density = {.mean = 0, .deviation = 1}}};
    const diffusion::Noised step = objective.draw(latents, diffusion::NoiseSource::of_process(), tokens);
    const at::Tensor loss = step.loss(model(step.input, step.timestep_B));
    //! [train]
    EXPECT_NEAR(loss.item<double>(), step.target.square().mean().item<double>(), 1e-6);
}

TEST(Objective, AnswersMayBeOf16BitsAndPicturesToo) {
    const at::Tensor x = at::randn({1, 2, 2, 2}).to(at::kBFloat16);
    const Noised noised = FlowObjective{}.draw(x, NoiseSource::seeded(1), 256);
    EXPECT_EQ(noised.input.scalar_type(), at::kFloat);
    EXPECT_EQ(noised.loss(noised.target.to(at::kBFloat16)).scalar_type(), at::kFloat);
}

TEST(Objective, WhatCannotBeLearntIsRefused) {
    const DdpmSchedule rescaled{DdpmScheduleOptions{.zero_terminal_snr = true}};
    const auto ddpm = [&](const DdpmSchedule& schedule, const DdpmObjectiveOptions& options) {
        return refused([&] { DdpmObjective{schedule, options}; });
    };
    const auto flow = [&](const FlowObjectiveOptions& options, bool dynamic = true) {
        return refused([&] { FlowObjective{FlowSchedule{FlowScheduleOptions{.dynamic = dynamic}}, options}; });
    };
    EXPECT_EQ(ddpm(rescaled, {}), Errc::bad_diffusion_options);
    EXPECT_EQ(ddpm(rescaled, {.prediction = Prediction::v}), Errc{});
    EXPECT_EQ(ddpm(rescaled, {.most_timestep = 998}), Errc{});
    EXPECT_EQ(ddpm(DdpmSchedule{}, {.prediction = Prediction::flow}), Errc::bad_diffusion_options);
    EXPECT_EQ(ddpm(DdpmSchedule{}, {.least_timestep = 900, .most_timestep = 800}), Errc::bad_diffusion_options);
    EXPECT_EQ(ddpm(DdpmSchedule{}, {.most_timestep = 1000}), Errc::bad_diffusion_options);
    EXPECT_EQ(ddpm(DdpmSchedule{}, {.min_snr_gamma = -1}), Errc::bad_diffusion_options);
    EXPECT_EQ(ddpm(DdpmSchedule{}, {.noise = {.offset = -1}}), Errc::bad_diffusion_options);
    EXPECT_EQ(ddpm(DdpmSchedule{}, {.noise = {.offset_probability = 2}}), Errc::bad_diffusion_options);
    EXPECT_EQ(flow({.density = {.deviation = 0}}), Errc::bad_diffusion_options);
    EXPECT_EQ(flow({.density = {.shape = DensityShape::mode, .scale = 2}}), Errc::bad_diffusion_options);
    EXPECT_EQ(flow({.shift = 2, .shift_by_tokens = true}), Errc::bad_diffusion_options);
    EXPECT_EQ(flow({.shift_by_tokens = true}, false), Errc::bad_diffusion_options);
    EXPECT_EQ(flow({.shift_by_tokens = true}), Errc{});
    EXPECT_EQ(refused([] { (void)DdpmObjective{}.at(at::zeros({2, 1}), at::zeros({2, 1}), {1}); }), Errc::bad_value);
}

}  // namespace
