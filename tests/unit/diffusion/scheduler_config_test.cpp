// scheduler_config.json as published models have it, and all that can be wrong in one.

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <strata/core/error.hpp>
#include <strata/core/sampling_method.hpp>
#include <strata/diffusion/ddpm_schedule.hpp>
#include <strata/diffusion/path.hpp>
#include <strata/diffusion/scheduler_config.hpp>
#include <strata/diffusion/step_plan.hpp>
#include <strata/diffusion/with_method.hpp>

#include "../../support/temporary_folder.hpp"

namespace {

using namespace strata::diffusion;
using nlohmann::json;
using strata::Errc;
using strata::Error;

SchedulerConfig read(const char* text) { return scheduler_config_of(json::parse(text), "scheduler_config.json"); }

/// What is wrong with a file, in one text; empty if nothing is.
std::string refusal(const char* text) {
    try {
        (void)read(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_model_config) << error.what();
        return error.what();
    }
    return {};
}

TEST(SchedulerConfig, OfSdxlAndItsKeysOfOtherClasses) {
    const SchedulerConfig config =
        read(R"({"_class_name": "EulerDiscreteScheduler", "_diffusers_version": "0.19.0.dev0",
        "beta_end": 0.012, "beta_schedule": "scaled_linear", "beta_start": 0.00085, "clip_sample": false,
        "interpolation_type": "linear", "num_train_timesteps": 1000, "prediction_type": "epsilon",
        "sample_max_value": 1.0, "set_alpha_to_one": false, "skip_prk_steps": true, "steps_offset": 1,
        "timestep_spacing": "leading", "trained_betas": null, "use_karras_sigmas": false})");
    EXPECT_EQ(std::get<DdpmScheduleOptions>(config.schedule), DdpmScheduleOptions{});
    EXPECT_EQ(config.prediction, Prediction::epsilon);
    EXPECT_EQ(config.solver, SolverOptions{});  // its defaults are these
    EXPECT_FALSE(config.is_flow());
}

TEST(SchedulerConfig, OfSd15DrawsWithDdimInThePlaceOfPndm) {
    const SchedulerConfig config = read(R"({"_class_name": "PNDMScheduler", "beta_start": 0.00085, "beta_end": 0.012,
        "beta_schedule": "scaled_linear", "num_train_timesteps": 1000, "set_alpha_to_one": false,
        "skip_prk_steps": true, "steps_offset": 1, "trained_betas": null, "clip_sample": false})");
    EXPECT_EQ(std::get<DdpmScheduleOptions>(config.schedule), DdpmScheduleOptions{});
    EXPECT_EQ(config.solver.solver, Solver::ddim);
    EXPECT_EQ(config.solver.last, LastLevel::first);
    EXPECT_EQ(config.solver.spacing, Spacing::leading);
    EXPECT_EQ(config.solver.clip, 0);
}

TEST(SchedulerConfig, OfFlux) {
    const SchedulerConfig config = read(R"({"_class_name": "FlowMatchEulerDiscreteScheduler", "base_image_seq_len": 256,
        "base_shift": 0.5, "max_image_seq_len": 4096, "max_shift": 1.15, "num_train_timesteps": 1000, "shift": 3.0,
        "use_dynamic_shifting": true})");
    EXPECT_TRUE(config.is_flow());
    EXPECT_EQ(std::get<FlowScheduleOptions>(config.schedule), FlowScheduleOptions{});
    EXPECT_EQ(config.prediction, Prediction::flow);
}

TEST(SchedulerConfig, WhatIsAbsentIsAsItsClassHasIt) {
    const SchedulerConfig ddim = read(R"({"_class_name": "DDIMScheduler"})");
    EXPECT_EQ(std::get<DdpmScheduleOptions>(ddim.schedule).beta_start, 0.0001);
    EXPECT_EQ(std::get<DdpmScheduleOptions>(ddim.schedule).shape, BetaShape::linear);
    EXPECT_EQ(ddim.solver.spacing, Spacing::leading);
    EXPECT_EQ(ddim.solver.steps_offset, 0);
    EXPECT_EQ(ddim.solver.clip, 1);
    EXPECT_EQ(ddim.solver.last, LastLevel::clean);
    EXPECT_EQ(read(R"({"_class_name": "EulerDiscreteScheduler"})").solver.spacing, Spacing::linspace);
    EXPECT_EQ(read(R"({"_class_name": "EulerAncestralDiscreteScheduler"})").solver.eta, 1);
    EXPECT_EQ(read(R"({"_class_name": "DDPMScheduler", "clip_sample_range": 2})").solver.clip, 2);
    const auto flow =
        std::get<FlowScheduleOptions>(read(R"({"_class_name": "FlowMatchEulerDiscreteScheduler"})").schedule);
    EXPECT_EQ(flow.shift, 1);
    EXPECT_FALSE(flow.dynamic);
}

TEST(SchedulerConfig, OptionsOfMultistepSolvers) {
    const SolverOptions dpm = read(R"({"_class_name": "DPMSolverMultistepScheduler", "algorithm_type": "dpmsolver++",
        "solver_type": "heun", "use_karras_sigmas": true, "final_sigmas_type": "sigma_min", "solver_order": 1,
        "lower_order_final": false, "prediction_type": "v_prediction"})")
                                  .solver;
    EXPECT_EQ(dpm.solver, Solver::dpm_solver_2m);
    EXPECT_EQ(dpm.term, MultistepTerm::heun);
    EXPECT_EQ(dpm.last, LastLevel::first);
    EXPECT_EQ(dpm.order, 1);
    EXPECT_TRUE(dpm.karras_sigmas);
    EXPECT_FALSE(dpm.lower_order_final);
    const SolverOptions unipc =
        read(R"({"_class_name": "UniPCMultistepScheduler", "solver_type": "bh1", "solver_order": 3})").solver;
    EXPECT_EQ(unipc.solver, Solver::unipc);
    EXPECT_EQ(unipc.b, UniPcB::bh1);
    EXPECT_EQ(unipc.order, 3);
    EXPECT_EQ(read(R"({"_class_name": "UniPCMultistepScheduler", "solver_type": "midpoint"})").solver.b, UniPcB::bh2);
    EXPECT_EQ(read(R"({"_class_name": "DPMSolverMultistepScheduler", "solver_type": "bh1"})").solver.term,
              MultistepTerm::midpoint);
}

TEST(SchedulerConfig, AllThatIsWrongIsToldAtOnce) {
    const std::string told = refusal(R"({"_class_name": "DPMSolverMultistepScheduler", "beta_start": "small",
        "beta_schedule": "sigmoid", "algorithm_type": "dpmsolver", "solver_order": 2.5, "use_flow_sigmas": true,
        "trained_betas": [0.1, "x"], "lower_order_final": 1, "half_life": 3})");
    for (const char* key : {"beta_start", "beta_schedule", "algorithm_type", "solver_order", "use_flow_sigmas",
                            "trained_betas", "lower_order_final", "half_life"})
        EXPECT_NE(told.find(std::string{"'"} + key + "'"), std::string::npos) << key << " is not in: " << told;
    EXPECT_NE(refusal(R"({"_class_name": "FlowMatchEulerDiscreteScheduler", "shift_terminal": 0.1})"), "");
    EXPECT_NE(refusal(R"({"_class_name": "EulerDiscreteScheduler", "interpolation_type": "log_linear"})"), "");
    EXPECT_EQ(refusal(R"({"_class_name": "PNDMScheduler", "interpolation_type": "log_linear"})"), "");
    EXPECT_NE(refusal(R"({"_class_name": "DDPMScheduler", "variance_type": "learned_range"})"), "");
    EXPECT_NE(refusal(R"({"_class_name": "LCMScheduler"})").find("LCMScheduler"), std::string::npos);
    EXPECT_NE(refusal(R"({})").find("_class_name is missing"), std::string::npos);
    EXPECT_NE(refusal(R"([])"), "");
}

/// Else the first pictures of a run would be its end.
TEST(SchedulerConfig, NumbersThatNoSolverHasAreToldWithTheRest) {
    for (const char* text : {R"({"_class_name": "DPMSolverMultistepScheduler", "solver_order": 3})",
                             R"({"_class_name": "UniPCMultistepScheduler", "solver_order": 4})",
                             R"({"_class_name": "UniPCMultistepScheduler", "solver_order": 0})"})
        EXPECT_NE(refusal(text).find("'solver_order'"), std::string::npos) << text;
    EXPECT_NE(refusal(R"({"_class_name": "DDIMScheduler", "steps_offset": -1})").find("'steps_offset' is -1"),
              std::string::npos);
}

TEST(SchedulerConfig, WhatIsDrawnInAWayThatIsNotHereStillSaysHowItWasTrained) {
    const SchedulerConfig heun = read(R"({"_class_name": "HeunDiscreteScheduler", "beta_start": 0.00085,
        "beta_end": 0.012, "beta_schedule": "scaled_linear", "prediction_type": "v_prediction", "half_life": 3,
        "timestep_spacing": "leading", "steps_offset": 1, "use_karras_sigmas": true})");
    EXPECT_EQ(heun.not_here, "HeunDiscreteScheduler");
    EXPECT_EQ(std::get<DdpmScheduleOptions>(heun.schedule), DdpmScheduleOptions{});
    EXPECT_EQ(heun.prediction, Prediction::v);
    EXPECT_EQ(heun.solver.solver, Solver::euler);
    EXPECT_TRUE(heun.solver.karras_sigmas);
    EXPECT_NE(refusal(R"({"_class_name": "LMSDiscreteScheduler", "beta_schedule": "sigmoid"})"), "");
    const SchedulerConfig sde =
        read(R"({"_class_name": "DPMSolverMultistepScheduler", "algorithm_type": "sde-dpmsolver++"})");
    EXPECT_EQ(sde.not_here, "sde-dpmsolver++");
    EXPECT_EQ(sde.solver.solver, Solver::dpm_solver_2m);
    EXPECT_EQ(read(R"({"_class_name": "PNDMScheduler"})").not_here, "");
}

/// euler_at_final: the last of 20 steps is of first order, where it else would be of second.
TEST(SchedulerConfig, TheLastStepOfDpmSolverMayBeOfFirstOrder) {
    const auto pictures_of_last = [](const char* text) {
        SolverOptions solver = read(text).solver;
        solver.steps = 20;
        return plan_of(path_of(DdpmSchedule{}, solver), solver).steps.back().advance.of_pictures.size();
    };
    EXPECT_EQ(pictures_of_last(R"({"_class_name": "DPMSolverMultistepScheduler", "final_sigmas_type": "sigma_min"})"),
              2U);
    EXPECT_EQ(pictures_of_last(R"({"_class_name": "DPMSolverMultistepScheduler", "final_sigmas_type": "sigma_min",
                                   "euler_at_final": true})"),
              1U);
}

/// As diffusers' from_config() makes one class of another's file: keys that the new class does not have are its defaults.
TEST(SchedulerConfig, AnotherMethodEndsAndClipsAsItsOwnClass) {
    using strata::SamplingMethod;
    const SolverOptions pndm = read(R"({"_class_name": "PNDMScheduler", "set_alpha_to_one": false})").solver;
    ASSERT_EQ(pndm.last, LastLevel::first);
    for (const SamplingMethod method : {SamplingMethod::euler, SamplingMethod::euler_ancestral, SamplingMethod::ddpm,
                                        SamplingMethod::dpm_solver_2m, SamplingMethod::unipc})
        EXPECT_EQ(with_method(pndm, method).last, LastLevel::clean) << static_cast<int>(method);
    EXPECT_EQ(with_method(pndm, SamplingMethod::ddim).last, LastLevel::first);

    const SolverOptions dpm =
        read(R"({"_class_name": "DPMSolverMultistepScheduler", "final_sigmas_type": "sigma_min"})").solver;
    EXPECT_EQ(with_method(dpm, SamplingMethod::unipc).last, LastLevel::first);
    EXPECT_EQ(with_method(dpm, SamplingMethod::euler).last, LastLevel::first);
    EXPECT_EQ(with_method(dpm, SamplingMethod::euler_ancestral).last, LastLevel::clean) << "has no final_sigmas_type";
    EXPECT_EQ(with_method(dpm, SamplingMethod::ddim).last, LastLevel::clean);

    const SolverOptions ddpm = read(R"({"_class_name": "DDPMScheduler"})").solver;
    ASSERT_EQ(ddpm.clip, 1);
    EXPECT_EQ(with_method(ddpm, SamplingMethod::ddim).clip, 1);
    EXPECT_EQ(with_method(ddpm, SamplingMethod::euler).clip, 0);
}

TEST(SchedulerConfig, AFileMayHavePythonsInfinity) {
    const strata_test::TemporaryFolder folder;
    const auto file = folder.path() / "scheduler_config.json";
    std::ofstream{file} << R"({"_class_name": "DPMSolverMultistepScheduler", "lambda_min_clipped": -Infinity,
        "timestep_spacing": "trailing"})";
    EXPECT_EQ(load_scheduler_config(file).solver.spacing, Spacing::trailing);
    try {
        (void)load_scheduler_config(folder.path() / "none.json");
        ADD_FAILURE() << "read";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::unreadable_config);
    }
}

}  // namespace
