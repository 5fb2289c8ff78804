// Samplers on tensors: the reference implementations' steps, guidance, and what models and callers may do wrong.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <strata/core/error.hpp>
#include <strata/diffusion/guidance.hpp>
#include <strata/diffusion/sampler.hpp>

#include "../../support/refused.hpp"
#include "golden_tensors.hpp"

namespace {

using namespace strata::diffusion;
using nlohmann::json;
using strata::Errc;
using strata_test::distance;
using strata_test::refused;
using strata_test::tensor_of;

TEST(Sampler, EulerTakesTheStepsOfTheReference) {
    if (!std::filesystem::exists(strata_test::golden_file("sched_ddpm_euler")))
        GTEST_SKIP() << strata_test::golden_file("sched_ddpm_euler") << " is not there";
    const json golden = strata_test::read_golden("sched_ddpm_euler");
    for (const json& run : golden["euler_steps"]) {
        const auto prediction = prediction_of(run["prediction_type"].get<std::string>());
        ASSERT_TRUE(prediction);
        const Sampler sampler{DdpmSchedule{}, *prediction, {.steps = run["num_inference_steps"]}};
        const std::vector<Level>& levels = sampler.path().levels;
        std::size_t called = 0, stepped = 0;
        const auto model = [&](const at::Tensor& x, double timestep) {
            const json& step = run["steps"][called++];
            EXPECT_EQ(timestep, step["timestep"].get<double>());
            EXPECT_LT(distance(x, tensor_of(step["scaled_input"])), 1e-5) << called;
            return tensor_of(step["model_output"]);
        };
        // Their samples are ours divided by alpha: pictures keep their size, and noise grows.
        const DrawHooks hooks{.after_step = [&](int i, const at::Tensor& x, const at::Tensor& picture) {
            const json& step = run["steps"][stepped++];
            EXPECT_LT(distance(x / levels[static_cast<std::size_t>(i) + 1].alpha, tensor_of(step["prev_sample"])), 1e-5)
                << i;
            EXPECT_LT(distance(picture, tensor_of(step["pred_original"])), 1e-5) << i;
        }};
        (void)sampler.draw(tensor_of(run["init"]) * levels[0].alpha / sampler.path().start, model, hooks);
        EXPECT_EQ(called, run["steps"].size());
        EXPECT_EQ(stepped, run["steps"].size());
    }
}

TEST(Sampler, EulerOfAFlowTakesTheStepsOfTheReference) {
    if (!std::filesystem::exists(strata_test::golden_file("sched_flow_match")))
        GTEST_SKIP() << strata_test::golden_file("sched_flow_match") << " is not there";
    const json run = strata_test::read_golden("sched_flow_match")["euler_steps"];
    const Sampler sampler{FlowSchedule{}, {.steps = run["num_inference_steps"]}, 1024};  // mu 0.63
    std::size_t called = 0;
    const auto model = [&](const at::Tensor&, double timestep) {
        const json& step = run["steps"][called++];
        EXPECT_NEAR(timestep, step["timestep"].get<double>(), 1e-3);
        return tensor_of(step["model_output"]);
    };
    const DrawHooks hooks{.after_step = [&](int i, const at::Tensor& x, const at::Tensor&) {
        EXPECT_LT(distance(x, tensor_of(run["steps"][static_cast<std::size_t>(i)]["prev_sample"])), 1e-5) << i;
    }};
    (void)sampler.draw(tensor_of(run["init"]), model, hooks);
    EXPECT_EQ(called, 4U);
}

/// A model that knows the one picture there is, and says it in any parametrisation.
struct OnePicture {
    Prediction prediction;
    const Path* path;
    double value = 0.25;
    std::vector<double> told = {};
    std::int64_t largest_batch = 0;

    at::Tensor operator()(const at::Tensor& x, double timestep) {
        const Level level = path->levels[told.size()];
        told.push_back(timestep);
        largest_batch = std::max(largest_batch, x.size(0));
        const auto [of_sample, of_output] = picture_weights(prediction, level);
        return (value - x * of_sample) / of_output;
    }
};

TEST(Sampler, EverySolverFindsThePictureInEveryParametrisation) {
    const at::Tensor noise = at::randn({2, 3, 4, 4});
    for (const auto solver : {Solver::euler, Solver::ddim, Solver::dpm_solver_2m, Solver::unipc}) {
        for (const auto prediction : {Prediction::epsilon, Prediction::v, Prediction::sample}) {
            const Sampler sampler{DdpmSchedule{}, prediction, {.solver = solver, .steps = 9}};
            OnePicture model{prediction, &sampler.path()};
            const at::Tensor drawn = sampler.draw(noise, model);
            EXPECT_LT((drawn - 0.25).abs().max().item<double>(), 1e-4) << name_of(solver) << " " << name_of(prediction);
            EXPECT_EQ(model.told, sampler.path().timesteps);  // one call a step
        }
        const Sampler flow{FlowSchedule{}, {.solver = solver, .steps = 9}, 4096};
        OnePicture model{Prediction::flow, &flow.path()};
        EXPECT_LT((flow.draw(noise, model) - 0.25).abs().max().item<double>(), 1e-5) << name_of(solver);
    }
}

TEST(Sampler, VBeginsWithoutSignalAndEpsilonDoesNot) {
    const DdpmSchedule rescaled{DdpmScheduleOptions{.zero_terminal_snr = true}};
    SolverOptions options{.solver = Solver::ddim, .steps = 6};
    options.spacing = Spacing::trailing;
    const Sampler sampler{rescaled, Prediction::v, options};
    EXPECT_EQ(sampler.path().levels[0].alpha, 0);
    OnePicture model{Prediction::v, &sampler.path()};
    EXPECT_LT((sampler.draw(at::randn({1, 3, 2, 2}), model) - 0.25).abs().max().item<double>(), 1e-5);
    EXPECT_EQ(refused([&] { Sampler{rescaled, Prediction::epsilon, options}; }), Errc::bad_diffusion_options);
}

TEST(Sampler, FreshNoiseComesFromTheCallerOnly) {
    const Sampler sampler{DdpmSchedule{}, Prediction::sample, {.solver = Solver::ddim, .steps = 5, .eta = 1}};
    const auto nothing_there = [](const at::Tensor& x, double) { return at::zeros_like(x); };
    const at::Tensor noise = at::ones({1, 2});
    EXPECT_EQ(refused([&] { (void)sampler.draw(noise, nothing_there); }), Errc::bad_diffusion_options);
    std::vector<int> asked;
    at::Tensor after_first;
    const DrawHooks hooks{.fresh_noise =
                              [&](int step) {
                                  asked.push_back(step);
                                  return at::ones({1, 2}) * 3;
                              },
                          .after_step =
                              [&](int step, const at::Tensor& x, const at::Tensor&) {
                                  if (step == 0) after_first = x;
                              }};
    (void)sampler.draw(noise, nothing_there, hooks);
    EXPECT_EQ(asked, (std::vector<int>{0, 1, 2, 3}));  // the last step ends without noise
    const PlannedStep& first = sampler.plan().steps[0];
    EXPECT_NEAR(after_first[0][0].item<double>(), first.advance.of_sample + 3 * first.fresh_noise, 1e-6);
}

TEST(Sampler, PicturesOnTheWayAreClippedWhereThatIsAskedFor) {
    const auto too_large = [](const at::Tensor& x, double) { return at::full_like(x, 7); };
    const at::Tensor noise = at::randn({1, 4});
    const Sampler clipped{DdpmSchedule{}, Prediction::sample, {.solver = Solver::ddim, .steps = 3, .clip = 1}};
    EXPECT_TRUE(at::equal(clipped.draw(noise, too_large), at::ones({1, 4})));
    const Sampler free{DdpmSchedule{}, Prediction::sample, {.solver = Solver::ddim, .steps = 3}};
    EXPECT_TRUE(at::equal(free.draw(noise, too_large), at::full({1, 4}, 7.0f)));
}

TEST(Sampler, ModelsComputeInTheirOwnTypeAndSamplesStayFp32) {
    const Sampler sampler{FlowSchedule{}, {.steps = 3}, 256};
    const auto model = [](const at::Tensor& x, double) {
        EXPECT_EQ(x.scalar_type(), at::kFloat);
        EXPECT_FALSE(at::GradMode::is_enabled());
        return x.to(at::kBFloat16);
    };
    EXPECT_EQ(sampler.draw(at::randn({1, 4}), model).scalar_type(), at::kFloat);
    const auto wrong = [](const at::Tensor& x, double) { return x.narrow(1, 0, 2); };
    EXPECT_EQ(refused([&] { (void)sampler.draw(at::randn({1, 4}), wrong); }), Errc::bad_value);
}

TEST(Sampler, GuidancePushesAwayFromTheEmptyCaption) {
    const at::Tensor prompt = at::randn({2, 3, 8, 8}) * 2 + 1, empty = at::randn({2, 3, 8, 8});
    EXPECT_TRUE(at::allclose(guided(prompt, empty, {.scale = 3}), empty + 3 * (prompt - empty)));
    const at::Tensor rescaled = guided(prompt, empty, {.scale = 7.5, .rescale = 1});
    const auto deviation = [](const at::Tensor& x) { return x.flatten(1).std(at::IntArrayRef{1}, true); };
    EXPECT_TRUE(at::allclose(deviation(rescaled), deviation(prompt), 1e-4));
    const at::Tensor half = guided(prompt, empty, {.scale = 7.5, .rescale = 0.5});
    EXPECT_TRUE(at::allclose(half, (rescaled + guided(prompt, empty, {.scale = 7.5})) / 2, 1e-4, 1e-5));

    std::int64_t batch = 0;
    const auto model = [&](const at::Tensor& x, double) {
        batch = x.size(0);
        return batch == 4 ? at::cat({prompt, empty}) : prompt;
    };
    const at::Tensor x = at::randn({2, 3, 8, 8});
    EXPECT_TRUE(at::equal(guided_call(model, x, 5, {.scale = 3}), guided(prompt, empty, {.scale = 3})));
    EXPECT_EQ(batch, 4);
    EXPECT_TRUE(at::equal(guided_call(model, x, 5, {}), prompt));
    EXPECT_EQ(batch, 2);  // scale 1 needs no second half
}

TEST(Sampler, DrawsAsItsPageShows) {
    namespace diffusion = strata::diffusion;
    const DdpmSchedule schedule;
    const at::Tensor noise = at::randn({2, 4, 8, 8});
    int calls = 0;
    const auto unet = [&](const at::Tensor& x, double) {
        ++calls;
        return x;
    };
    //! [draw]
    const diffusion::Sampler sampler{
        schedule, diffusion::Prediction::epsilon, {.solver = diffusion::Solver::unipc, .steps = 20}};
    const at::Tensor latents = sampler.draw(noise, [&](const at::Tensor& x, double timestep) {
        return diffusion::guided_call(unet, x, timestep, {.scale = 5, .rescale = 0.7});
    });
    //! [draw]
    EXPECT_EQ(calls, 20);
    EXPECT_EQ(latents.sizes(), noise.sizes());
    EXPECT_TRUE(latents.isfinite().all().item<bool>());
}

}  // namespace
