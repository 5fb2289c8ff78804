#pragma once
// strata/diffusion/impl/scheduler_config.ipp - reads scheduler_config.json, all that is wrong in it at once.

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/value.hpp>
#include <strata/diffusion/impl/flow_schedule.ipp>
#include <strata/diffusion/impl/scheduler_keys.ipp>
#include <strata/diffusion/scheduler_config.hpp>

namespace strata::diffusion {

namespace detail {

/// not_here: its way of drawing is none of ours, and its noise levels are the others'.
enum class SchedulerClass : std::uint8_t {
    ddpm,
    ddim,
    pndm,
    euler,
    euler_ancestral,
    dpm_solver,
    unipc,
    flow_euler,
    not_here
};

inline constexpr std::array<NamedValue<SchedulerClass>, 15> scheduler_classes{{
    {"DDPMScheduler", SchedulerClass::ddpm},
    {"DDIMScheduler", SchedulerClass::ddim},
    {"PNDMScheduler", SchedulerClass::pndm},
    {"EulerDiscreteScheduler", SchedulerClass::euler},
    {"EulerAncestralDiscreteScheduler", SchedulerClass::euler_ancestral},
    {"DPMSolverMultistepScheduler", SchedulerClass::dpm_solver},
    {"UniPCMultistepScheduler", SchedulerClass::unipc},
    {"FlowMatchEulerDiscreteScheduler", SchedulerClass::flow_euler},
    {"DEISMultistepScheduler", SchedulerClass::not_here},
    {"LMSDiscreteScheduler", SchedulerClass::not_here},
    {"HeunDiscreteScheduler", SchedulerClass::not_here},
    {"KDPM2DiscreteScheduler", SchedulerClass::not_here},
    {"KDPM2AncestralDiscreteScheduler", SchedulerClass::not_here},
    {"DPMSolverSDEScheduler", SchedulerClass::not_here},
    {"DPMSolverSinglestepScheduler", SchedulerClass::not_here},
}};

inline FlowScheduleOptions flow_keys(SchedulerKeys& keys) {
    FlowScheduleOptions options;
    options.timesteps = keys.whole("num_train_timesteps", 1000);
    options.shift = keys.number("shift", 1);
    options.dynamic = keys.flag("use_dynamic_shifting", false);
    options.base_shift = keys.number("base_shift", 0.5);
    options.max_shift = keys.number("max_shift", 1.15);
    options.base_tokens = keys.whole("base_image_seq_len", 256);
    options.max_tokens = keys.whole("max_image_seq_len", 4096);
    options.kind = keys.choice(
        "time_shift_type", TimeShift::exponential,
        std::array<NamedValue<TimeShift>, 2>{{{"exponential", TimeShift::exponential}, {"linear", TimeShift::linear}}});
    for (const char* key :
         {"invert_sigmas", "stochastic_sampling", "use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas"})
        keys.only(key, false);
    keys.only("shift_terminal", nullptr);
    return options;
}

inline DdpmScheduleOptions ddpm_keys(SchedulerKeys& keys) {
    DdpmScheduleOptions options;
    options.timesteps = keys.whole("num_train_timesteps", 1000);
    options.beta_start = keys.number("beta_start", 0.0001);
    options.beta_end = keys.number("beta_end", 0.02);
    options.shape =
        keys.choice("beta_schedule", BetaShape::linear,
                    std::array<NamedValue<BetaShape>, 3>{{{"linear", BetaShape::linear},
                                                          {"scaled_linear", BetaShape::scaled_linear},
                                                          {"squaredcos_cap_v2", BetaShape::squared_cosine}}});
    options.trained_betas = keys.numbers("trained_betas");
    options.zero_terminal_snr = keys.flag("rescale_betas_zero_snr", false);
    return options;
}

/// Keys that say how levels are placed, of all classes but the flow's.
inline void spacing_keys(SchedulerKeys& keys, SchedulerClass of, SolverOptions& solver) {
    const bool leads = of == SchedulerClass::ddpm || of == SchedulerClass::ddim ||
                       of == SchedulerClass::pndm;  // where the key is absent
    solver.spacing = keys.choice(
        "timestep_spacing", leads ? Spacing::leading : Spacing::linspace,
        std::array<NamedValue<Spacing>, 3>{
            {{"leading", Spacing::leading}, {"trailing", Spacing::trailing}, {"linspace", Spacing::linspace}}});
    solver.steps_offset = keys.whole("steps_offset", 0, 0);
}

inline LastLevel final_sigma(SchedulerKeys& keys) {
    return keys.choice(
        "final_sigmas_type", LastLevel::clean,
        std::array<NamedValue<LastLevel>, 2>{{{"zero", LastLevel::clean}, {"sigma_min", LastLevel::first}}});
}

inline void no_other_sigmas(SchedulerKeys& keys) {
    for (const char* key : {"use_exponential_sigmas", "use_beta_sigmas"}) keys.only(key, false);
}

inline void multistep_keys(SchedulerKeys& keys, SolverOptions& solver, int most_order) {
    solver.order = keys.whole("solver_order", 2, 1, most_order);
    solver.lower_order_final = keys.flag("lower_order_final", true);
    solver.karras_sigmas = keys.flag("use_karras_sigmas", false);
    solver.last = final_sigma(keys);
    for (const char* key : {"thresholding", "use_flow_sigmas", "use_dynamic_shifting"}) keys.only(key, false);
    no_other_sigmas(keys);
    keys.pass_over({"flow_shift", "time_shift_type", "sigma_min", "sigma_max", "shift_terminal"});
}

inline void ddim_keys(SchedulerKeys& keys, SchedulerClass of, SolverOptions& solver) {
    solver.solver = Solver::ddim;
    solver.eta = of == SchedulerClass::ddpm ? 1 : 0;
    if (of == SchedulerClass::pndm) {
        solver.last = keys.flag("set_alpha_to_one", false) ? LastLevel::clean : LastLevel::first;
        return;
    }
    if (of == SchedulerClass::ddim)
        solver.last = keys.flag("set_alpha_to_one", true) ? LastLevel::clean : LastLevel::first;
    if (of == SchedulerClass::ddpm) keys.only("variance_type", "fixed_small");
    keys.only("thresholding", false);
    const double range = keys.number("clip_sample_range", 1);
    if (keys.flag("clip_sample", true)) solver.clip = range;
}

inline void solver_keys(SchedulerKeys& keys, SchedulerClass of, SchedulerConfig& config) {
    SolverOptions& solver = config.solver;
    switch (of) {
        case SchedulerClass::ddpm:
        case SchedulerClass::ddim:
        case SchedulerClass::pndm:
            ddim_keys(keys, of, solver);
            break;
        case SchedulerClass::euler:
            solver.solver = Solver::euler;
            solver.karras_sigmas = keys.flag("use_karras_sigmas", false);
            solver.last = final_sigma(keys);
            keys.only("interpolation_type", "linear");
            keys.only("timestep_type", "discrete");
            keys.only("sigma_min", nullptr);
            keys.only("sigma_max", nullptr);
            no_other_sigmas(keys);
            break;
        case SchedulerClass::euler_ancestral:
            solver.solver = Solver::euler;
            solver.eta = 1;
            break;
        case SchedulerClass::dpm_solver:
            solver.solver = Solver::dpm_solver_2m;
            multistep_keys(keys, solver, 2);
            if (keys.choice("algorithm_type", false,
                            std::array<NamedValue<bool>, 2>{{{"dpmsolver++", false}, {"sde-dpmsolver++", true}}}))
                config.not_here = "sde-dpmsolver++";
            // Each takes the words of the other for its own default, as configurations are made of one another there.
            solver.term = keys.choice("solver_type", MultistepTerm::midpoint,
                                      std::array<NamedValue<MultistepTerm>, 5>{{{"midpoint", MultistepTerm::midpoint},
                                                                                {"heun", MultistepTerm::heun},
                                                                                {"bh1", MultistepTerm::midpoint},
                                                                                {"bh2", MultistepTerm::midpoint},
                                                                                {"logrho", MultistepTerm::midpoint}}});
            solver.first_order_final = keys.flag("euler_at_final", false);
            keys.only("use_lu_lambdas", false);
            keys.only("variance_type", nullptr);
            keys.only("lambda_min_clipped", nullptr);
            break;
        case SchedulerClass::unipc:
            solver.solver = Solver::unipc;
            multistep_keys(keys, solver, 3);
            solver.b = keys.choice("solver_type", UniPcB::bh2,
                                   std::array<NamedValue<UniPcB>, 5>{{{"bh1", UniPcB::bh1},
                                                                      {"bh2", UniPcB::bh2},
                                                                      {"midpoint", UniPcB::bh2},
                                                                      {"heun", UniPcB::bh2},
                                                                      {"logrho", UniPcB::bh2}}});
            keys.only("predict_x0", true);
            keys.only("disable_corrector", nlohmann::json::array());
            keys.only("solver_p", nullptr);
            break;
        case SchedulerClass::not_here:
            solver.solver = Solver::euler;
            solver.karras_sigmas = keys.flag("use_karras_sigmas", false);
            return keys.pass_over_all();
        case SchedulerClass::flow_euler:
            break;
    }
    keys.pass_over({"algorithm_type",
                    "clip_sample",
                    "clip_sample_range",
                    "disable_corrector",
                    "dynamic_thresholding_ratio",
                    "euler_at_final",
                    "final_sigmas_type",
                    "interpolation_type",
                    "lambda_min_clipped",
                    "lower_order_final",
                    "predict_x0",
                    "sample_max_value",
                    "set_alpha_to_one",
                    "sigma_max",
                    "sigma_min",
                    "skip_prk_steps",
                    "solver_order",
                    "solver_p",
                    "solver_type",
                    "thresholding",
                    "timestep_type",
                    "use_beta_sigmas",
                    "use_exponential_sigmas",
                    "use_flow_sigmas",
                    "use_karras_sigmas",
                    "use_lu_lambdas",
                    "variance_type"});
}

/// JSON in which Python's -Infinity, as the value of a key, is null.
inline std::string without_infinities(std::string text) {
    constexpr std::string_view infinity = "-Infinity";
    for (auto at = text.find(infinity); at != std::string::npos; at = text.find(infinity, at + 1)) {
        const auto before = text.find_last_not_of(" \t\r\n", at == 0 ? 0 : at - 1);
        if (before != std::string::npos && text[before] == ':') text.replace(at, infinity.size(), "null     ");
    }
    return text;
}

}  // namespace detail

STRATA_INLINE SchedulerConfig scheduler_config_of(const nlohmann::json& json, const std::string& source) {
    if (!json.is_object())
        throw Error{Errc::bad_model_config, source + " is no JSON object", "give a model's scheduler_config.json"};
    const auto name = json.find("_class_name");
    const auto* of =
        std::find_if(detail::scheduler_classes.begin(), detail::scheduler_classes.end(), [&](const auto& known) {
            return name != json.end() && name->is_string() &&
                   name->template get_ref<const std::string&>() == known.name;
        });
    if (of == detail::scheduler_classes.end()) {
        std::string known;
        for (const auto& scheduler : detail::scheduler_classes)
            known += (known.empty() ? "" : ", ") + std::string{scheduler.name};
        throw Error{Errc::bad_model_config,
                    source + ": _class_name is " + (name == json.end() ? "missing" : name->dump()) +
                        ", no scheduler that is read",
                    "give a file of one of " + known};
    }
    detail::SchedulerKeys keys{json, source};
    SchedulerConfig config;
    if (of->value == detail::SchedulerClass::flow_euler) {
        config.schedule = detail::flow_keys(keys);
        config.prediction = Prediction::flow;
    } else {
        config.schedule = detail::ddpm_keys(keys);
        config.prediction = keys.choice(
            "prediction_type", Prediction::epsilon,
            std::array<detail::NamedValue<Prediction>, 3>{
                {{"epsilon", Prediction::epsilon}, {"v_prediction", Prediction::v}, {"sample", Prediction::sample}}});
        detail::spacing_keys(keys, of->value, config.solver);
        if (of->value == detail::SchedulerClass::not_here) config.not_here = of->name;
        detail::solver_keys(keys, of->value, config);
    }
    keys.finish();
    return config;
}

STRATA_INLINE SchedulerConfig load_scheduler_config(const std::filesystem::path& file) {
    std::ifstream in{file, std::ios::binary};
    if (!in) return scheduler_config_of(config::load_json(file), file.string());  // throws, in its words
    std::ostringstream text;
    text << in.rdbuf();
    return scheduler_config_of(config::detail::parse_json(detail::without_infinities(text.str()), file.string()),
                               file.string());
}

}  // namespace strata::diffusion
