// Tables of noise levels, densities of timesteps and weights of losses, beside those of the reference implementations.

#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/error.hpp>
#include <strata/diffusion/ddpm_schedule.hpp>
#include <strata/diffusion/flow_schedule.hpp>
#include <strata/diffusion/loss_weights.hpp>
#include <strata/diffusion/path.hpp>
#include <strata/diffusion/scheduler_config.hpp>
#include <strata/diffusion/timestep_density.hpp>

#include "../../support/refused.hpp"
#include "golden_json.hpp"

namespace {

using namespace strata::diffusion;
using nlohmann::json;
using strata::Errc;
using strata::Error;
using strata_test::expect_relative;
using strata_test::numbers;
using strata_test::refused;

#define NEEDS_GOLDEN(name)                                        \
    if (!std::filesystem::exists(strata_test::golden_file(name))) \
    GTEST_SKIP() << strata_test::golden_file(name) << " is not there"

TEST(NoiseSchedules, DdpmTablesAreTheirs) {
    NEEDS_GOLDEN("sched_ddpm_euler");
    const json golden = strata_test::read_golden("sched_ddpm_euler");
    const DdpmSchedule schedule;
    expect_relative(schedule.betas(), numbers(golden["betas"]), 5e-7, "betas");
    expect_relative(schedule.alphas_cumprod(), numbers(golden["alphas_cumprod"]), 5e-7, "alphas_cumprod");
    std::vector<double> snr;
    for (int t = 0; t < 1000; ++t) snr.push_back(schedule.level(t).snr());
    expect_relative(snr, numbers(golden["snr"]), 1e-6, "snr");

    const DdpmSchedule rescaled{DdpmScheduleOptions{.zero_terminal_snr = true}};
    const auto theirs = numbers(golden["zero_terminal_snr_alphas_cumprod"]);
    for (std::size_t t = 0; t < theirs.size(); ++t) EXPECT_NEAR(rescaled.alphas_cumprod()[t], theirs[t], 1e-6) << t;
    EXPECT_EQ(rescaled.alphas_cumprod().back(), 0.0f);
    EXPECT_TRUE(rescaled.ends_in_noise());
}

TEST(NoiseSchedules, MinSnrWeightsAreTheirs) {
    NEEDS_GOLDEN("sched_ddpm_euler");
    const json golden = strata_test::read_golden("sched_ddpm_euler");
    const DdpmSchedule schedule;
    for (const auto& entry : golden["min_snr"]) {
        std::vector<double> epsilon, v;
        for (int t = 0; t < 1000; ++t) {
            epsilon.push_back(min_snr_weight(Prediction::epsilon, schedule.level(t), entry["gamma"]));
            v.push_back(min_snr_weight(Prediction::v, schedule.level(t), entry["gamma"]));
        }
        expect_relative(epsilon, numbers(entry["epsilon: min(snr,gamma)/snr"]), 1e-6, "epsilon");
        expect_relative(v, numbers(entry["v_prediction: min(snr,gamma)/(snr+1)"]), 1e-6, "v");
    }
}

TEST(NoiseSchedules, EveryPredictionWeighsTheSameErrorOfThePictureTheSame) {
    for (const Level level : {Level{0.6, 0.8}, Level{0.28, 0.96}, Level{0.96, 0.28}}) {
        const double of_picture = min_snr_weight(Prediction::sample, level, 5);
        for (const auto prediction : {Prediction::epsilon, Prediction::v, Prediction::flow}) {
            const double error =
                picture_weights(prediction, level).of_output;  // of the picture, per error of the output
            EXPECT_NEAR(min_snr_weight(prediction, level, 5), of_picture * error * error, 1e-12) << name_of(prediction);
        }
    }
    EXPECT_EQ(min_snr_weight(Prediction::epsilon, {0, 1}, 5), 1);
    EXPECT_EQ(min_snr_weight(Prediction::v, {0, 1}, 5), 0);
}

TEST(NoiseSchedules, APredictionThatIsRightGivesThePicture) {
    const double x0 = 0.7, noise = -1.3;
    for (const Level level : {Level{0.6, 0.8}, Level{0.3, 0.7}, Level{1, 0}})
        for (const auto prediction : {Prediction::epsilon, Prediction::v, Prediction::sample, Prediction::flow}) {
            const auto [of_picture, of_noise] = target_weights(prediction, level);
            const auto [of_sample, of_output] = picture_weights(prediction, level);
            const double x = level.alpha * x0 + level.sigma * noise;
            EXPECT_NEAR(of_sample * x + of_output * (of_picture * x0 + of_noise * noise), x0, 1e-14)
                << name_of(prediction);
            EXPECT_EQ(prediction_of(name_of(prediction)), prediction);
        }
}

TEST(NoiseSchedules, BetasOfEveryShape) {
    const DdpmSchedule linear{DdpmScheduleOptions{4, 0.1, 0.4, BetaShape::linear}};
    expect_relative(linear.betas(), {0.1, 0.2, 0.3, 0.4}, 1e-6, "linear");
    const DdpmSchedule cosine{DdpmScheduleOptions{.timesteps = 1000, .shape = BetaShape::squared_cosine}};
    const auto f = [](double t) { return std::pow(std::cos((t + 0.008) / 1.008 * std::acos(-1.0) / 2), 2); };
    for (const int t : {0, 300, 800})
        EXPECT_NEAR(cosine.alphas_cumprod()[static_cast<std::size_t>(t)], f((t + 1) / 1000.0) / f(0), 1e-5) << t;
    EXPECT_FLOAT_EQ(cosine.betas().back(), 0.999f);
    const DdpmSchedule trained{DdpmScheduleOptions{.trained_betas = {0.5, 0.5}}};
    EXPECT_EQ(trained.timesteps(), 2);
    EXPECT_NEAR(trained.level(1).alpha, 0.5, 1e-7);
    EXPECT_NEAR(trained.level(1).snr(), 1.0 / 3, 1e-6);
}

TEST(NoiseSchedules, WrongNumbersAreOneErrorWithAllOfThem) {
    try {
        DdpmSchedule{DdpmScheduleOptions{.timesteps = 0, .beta_start = -1, .beta_end = 2}};
        FAIL() << "taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_diffusion_options);
        for (const char* word : {"0 timesteps", "beta_start is -1", "beta_end is 2"})
            EXPECT_NE(std::string{error.what()}.find(word), std::string::npos) << error.what();
    }
    using Ddpm = DdpmScheduleOptions;
    const auto made = [](const Ddpm& options) { return refused([&] { DdpmSchedule{options}; }); };
    EXPECT_EQ(made(Ddpm{.beta_start = 0.02, .beta_end = 0.01}), Errc::bad_diffusion_options);
    EXPECT_EQ(made(Ddpm{.trained_betas = {0.1, 1.5}}), Errc::bad_diffusion_options);
    EXPECT_EQ(made(Ddpm{.timesteps = 1, .zero_terminal_snr = true}), Errc::bad_diffusion_options);
    EXPECT_EQ(made(Ddpm{}), Errc{});
    EXPECT_EQ(refused([] { (void)DdpmSchedule{}.level(1000); }), Errc::bad_diffusion_options);
    EXPECT_EQ(refused([] { FlowSchedule{FlowScheduleOptions{.shift = 0, .dynamic = false}}; }),
              Errc::bad_diffusion_options);
    EXPECT_EQ(refused([] { FlowSchedule{FlowScheduleOptions{.base_tokens = 4096, .max_tokens = 256}}; }),
              Errc::bad_diffusion_options);
    EXPECT_EQ(refused([] { (void)FlowSchedule{}.training_sigma(1000); }), Errc::bad_diffusion_options);
}

FlowScheduleOptions options_of(const json& golden, const json& config) {
    json keys = config.is_string() ? golden[config.get<std::string>()] : config;
    keys["_class_name"] = "FlowMatchEulerDiscreteScheduler";
    return std::get<FlowScheduleOptions>(scheduler_config_of(keys, "sched_flow_match.json").schedule);
}

TEST(NoiseSchedules, FlowTablesAndShiftsAreTheirs) {
    NEEDS_GOLDEN("sched_flow_match");
    const json golden = strata_test::read_golden("sched_flow_match");
    const FlowSchedule flux;
    for (const auto& entry : golden["calculate_shift"])
        EXPECT_NEAR(flux.mu(entry["image_seq_len"]), entry["mu"].get<double>(), 1e-14);
    for (const auto& entry : golden["time_shift"])
        for (std::size_t i = 0; i < entry["t"].size(); ++i) {
            const auto kind = entry["type"] == "linear" ? TimeShift::linear : TimeShift::exponential;
            EXPECT_NEAR(time_shifted(entry["t"][i], entry["mu"], kind), entry["out"][i].get<double>(), 1e-14);
        }
    const json& table = golden["training_table_flux_dev"];
    for (std::size_t i = 0; i < table["index"].size(); ++i)
        EXPECT_EQ(flux.training_sigma(table["index"][i]), table["sigmas"][i].get<double>());
    for (const auto& entry : golden["training_table_shift"]) {
        const FlowSchedule shifted_one{FlowScheduleOptions{.shift = entry["shift"], .dynamic = false}};
        std::vector<double> sigmas;
        for (int i = 0; i < 1000; ++i) sigmas.push_back(shifted_one.training_sigma(i));
        expect_relative(sigmas, numbers(entry["sigmas"]), 2e-7, "sigmas");
    }
    for (const auto& entry : golden["schedules"]) {
        const FlowSchedule schedule{options_of(golden, entry["config"])};
        const bool even = entry["input_sigmas"].get<std::string>().starts_with("linspace");
        SolverOptions options{.steps = entry["num_inference_steps"]};
        options.flow_spacing = even ? FlowSpacing::even : FlowSpacing::table;
        const Path path = path_of(schedule, options, entry.value("image_seq_len", 256));
        std::vector<double> sigmas;
        for (const Level level : path.levels) sigmas.push_back(level.sigma);
        expect_relative(sigmas, numbers(entry["sigmas"]), 1e-6, "sigmas of " + entry.dump().substr(0, 120));
        expect_relative(path.timesteps, numbers(entry["timesteps"]), 1e-6, "timesteps");
    }
}

TEST(NoiseSchedules, DensitiesAndWeightsOfFlowsAreTheirs) {
    NEEDS_GOLDEN("sched_flow_match");
    const json golden = strata_test::read_golden("sched_flow_match");
    for (const auto& entry : golden["density"]) {
        TimestepDensity density;
        const bool normal = entry["scheme"] == "logit_normal";
        if (normal)
            density = {DensityShape::logit_normal, entry["logit_mean"], entry["logit_std"]};
        else
            density = {.shape = DensityShape::mode, .scale = entry["mode_scale"]};
        EXPECT_EQ(density.wants_normal(), normal);
        std::vector<double> u;
        for (const double random : numbers(entry[normal ? "standard_normal_z" : "uniform"]))
            u.push_back(density.at(random));
        expect_relative(u, numbers(entry["u"]), 1e-6, "u");
        const auto index = numbers(entry["index=floor(u*1000)"]);
        for (std::size_t i = 0; i < index.size(); ++i) EXPECT_EQ(std::floor(u[i] * 1000), index[i]);
    }
    for (const auto& entry : golden["loss_weighting"]) {
        const auto weighting = entry["scheme"] == "none"         ? FlowWeighting::none
                               : entry["scheme"] == "sigma_sqrt" ? FlowWeighting::sigma_sqrt
                                                                 : FlowWeighting::cosmap;
        std::vector<double> weights;
        for (const double sigma : numbers(entry["sigmas"])) weights.push_back(flow_weight(weighting, sigma));
        expect_relative(weights, numbers(entry["weights"]), 1e-6, entry["scheme"]);
    }
}

TEST(NoiseSchedules, DensitiesHaveTheirMedianAndTheirEnds) {
    EXPECT_DOUBLE_EQ((TimestepDensity{.shape = DensityShape::uniform}.at(0.25)), 0.25);
    EXPECT_NEAR((TimestepDensity{.shape = DensityShape::logit_normal, .mean = 1}.at(0)), 1 / (1 + std::exp(-1.0)),
                1e-15);
    for (const auto shape : {DensityShape::mode, DensityShape::cosmap}) {
        const TimestepDensity density{.shape = shape};
        EXPECT_NEAR(density.at(0.5), 0.5, 1e-12);
        EXPECT_NEAR(std::abs(density.at(0.999999) - density.at(0)), 1, 1e-5);
    }
}

TEST(NoiseSchedules, PathsOfEulerAreTheirs) {
    NEEDS_GOLDEN("sched_ddpm_euler");
    const json golden = strata_test::read_golden("sched_ddpm_euler");
    for (const auto& entry : golden["euler"]) {
        SolverOptions options{.steps = entry["num_inference_steps"]};
        options.spacing = entry["timestep_spacing"] == "leading"    ? Spacing::leading
                          : entry["timestep_spacing"] == "trailing" ? Spacing::trailing
                                                                    : Spacing::linspace;
        options.steps_offset = entry["steps_offset"];
        options.karras_sigmas = entry["use_karras_sigmas"];
        const Path path = path_of(DdpmSchedule{}, options);
        const std::string what = entry["timestep_spacing"].get<std::string>();
        std::vector<double> ratios;
        for (const Level level : path.levels) ratios.push_back(level.sigma / level.alpha);
        expect_relative(ratios, numbers(entry["sigmas"]), 2e-6, "sigmas of " + what);
        for (std::size_t i = 0; i < path.timesteps.size(); ++i)
            EXPECT_NEAR(path.timesteps[i], entry["timesteps"][i].get<double>(), 1e-3) << what;
        // Theirs starts in the space where pictures have size 1, ours where pictures and noise together have.
        EXPECT_NEAR(path.start / path.levels[0].alpha, entry["init_noise_sigma"].get<double>(), 1e-5) << what;
    }
}

TEST(NoiseSchedules, PathsOfTheOtherSolversVisitWholeTimesteps) {
    const DdpmSchedule schedule;
    const auto timesteps = [&](Solver solver, Spacing spacing, int steps, int offset) {
        SolverOptions options{.solver = solver, .steps = steps};
        options.spacing = spacing;
        options.steps_offset = offset;
        return path_of(schedule, options).timesteps;
    };
    using Timesteps = std::vector<double>;
    EXPECT_EQ(timesteps(Solver::ddim, Spacing::leading, 4, 1), (Timesteps{751, 501, 251, 1}));
    EXPECT_EQ(timesteps(Solver::ddim, Spacing::trailing, 4, 1), (Timesteps{999, 749, 499, 249}));
    EXPECT_EQ(timesteps(Solver::ddim, Spacing::linspace, 4, 1), (Timesteps{999, 666, 333, 0}));
    // One step more is spaced, and its last level left out.
    EXPECT_EQ(timesteps(Solver::unipc, Spacing::leading, 4, 1), (Timesteps{801, 601, 401, 201}));
    EXPECT_EQ(timesteps(Solver::dpm_solver_2m, Spacing::linspace, 4, 1), (Timesteps{999, 749, 500, 250}));
    EXPECT_EQ(timesteps(Solver::unipc, Spacing::trailing, 4, 1), (Timesteps{999, 749, 499, 249}));

    SolverOptions options{.solver = Solver::ddim, .steps = 4};
    options.last = LastLevel::first;
    EXPECT_EQ(path_of(schedule, options).levels.back(), schedule.level(0));
    options.last = LastLevel::clean;
    EXPECT_EQ(path_of(schedule, options).levels.back(), Level{});
    EXPECT_EQ(path_of(schedule, options).levels[1], schedule.level(501));

    SolverOptions karras{.solver = Solver::dpm_solver_2m, .steps = 5};
    karras.karras_sigmas = true;
    const Path path = path_of(schedule, karras);
    EXPECT_EQ(path.timesteps.front(), 999);
    EXPECT_EQ(path.timesteps.back(), 0);
    EXPECT_NEAR(path.levels[4].alpha, schedule.level(0).alpha, 1e-6);
}

TEST(NoiseSchedules, PathsThatLeadNowhereAreRefused) {
    const auto walked = [](const SolverOptions& options) {
        return refused([&] { (void)path_of(DdpmSchedule{}, options); });
    };
    EXPECT_EQ(walked({.steps = 0}), Errc::bad_diffusion_options);
    EXPECT_EQ(walked({.steps = 1001}), Errc::bad_diffusion_options);
    EXPECT_EQ(walked({.steps = 1000, .steps_offset = 0}), Errc{});
    EXPECT_EQ(walked({.steps = 1000, .steps_offset = 1}), Errc::bad_diffusion_options);
    EXPECT_EQ(walked({.solver = Solver::unipc, .steps = 1000}), Errc::bad_diffusion_options);
    EXPECT_EQ(walked({.solver = Solver::ddim, .karras_sigmas = true}), Errc::bad_diffusion_options);
    EXPECT_EQ(refused([] { (void)path_of(FlowSchedule{}, {.steps = 0}, 256); }), Errc::bad_diffusion_options);
}

}  // namespace
