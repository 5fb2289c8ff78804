#pragma once
// strata/diffusion/impl/scheduler_config.ipp - reads scheduler_config.json, all that is wrong in it at once.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/impl/load_json.ipp>
#include <strata/diffusion/impl/flow_schedule.ipp>
#include <strata/diffusion/scheduler_config.hpp>

namespace strata::diffusion {

namespace detail {

template <class Value>
struct NamedValue {
    std::string_view name;
    Value value;
};

/// Keys of one object, and what is wrong with them. A key that is wrong counts as absent.
class SchedulerKeys {
public:
    SchedulerKeys(const nlohmann::json& json, std::string source) : json_{&json}, source_{std::move(source)} {}

    double number(const char* key, double fallback) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return fallback;
        if (value->is_number()) return value->get<double>();
        refuse(key, *value, "give a number");
        return fallback;
    }
    int whole(const char* key, int fallback) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return fallback;
        const double number = value->is_number() ? value->get<double>() : 0.5;
        if (number == std::floor(number) && std::abs(number) <= 1e6) return static_cast<int>(number);
        refuse(key, *value, "give a whole number");
        return fallback;
    }
    bool flag(const char* key, bool fallback) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return fallback;
        if (value->is_boolean()) return value->get<bool>();
        refuse(key, *value, "give true or false");
        return fallback;
    }
    std::vector<double> numbers(const char* key) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return {};
        const auto is_number = [](const nlohmann::json& element) { return element.is_number(); };
        if (value->is_array() && std::all_of(value->begin(), value->end(), is_number))
            return value->get<std::vector<double>>();
        refuse(key, *value, "give a list of numbers, or null");
        return {};
    }
    template <class Value, std::size_t n>
    Value choice(const char* key, Value fallback, const std::array<NamedValue<Value>, n>& choices) {
        const nlohmann::json* value = given(key);
        if (value == nullptr) return fallback;
        std::string valid;
        for (const auto& choice : choices) {
            if (value->is_string() && value->get_ref<const std::string&>() == choice.name) return choice.value;
            valid += (valid.empty() ? "'" : ", '") + std::string{choice.name} + "'";
        }
        refuse(key, *value, "of what this key may be, " + valid + " is implemented");
        return fallback;
    }
    /// A key of which one value is implemented, the one that is meant when it is absent or null.
    void only(const char* key, const nlohmann::json& implemented) {
        const nlohmann::json* value = given(key);
        if (value != nullptr && *value != implemented)
            refuse(key, *value, "only " + implemented.dump() + " is implemented; use another scheduler of this model");
    }
    void pass_over(std::initializer_list<const char*> keys) { known_.insert(keys.begin(), keys.end()); }

    void add(Error problem) { problems_.add(std::move(problem)); }
    /// Throws what was found, and keys that nobody asked for.
    void finish() {
        for (const auto& [key, value] : json_->items())
            if (!key.starts_with('_') && !known_.contains(key))
                problems_.add(Error{Errc::bad_model_config,
                                    source_ + ": key '" + key + "' is known to no scheduler here",
                                    "take it out if it changes nothing, or use another scheduler of this model"});
        problems_.finish();
    }
    [[nodiscard]] const std::string& source() const noexcept { return source_; }

private:
    const nlohmann::json* given(const char* key) {
        known_.insert(key);
        const auto found = json_->find(key);
        return found == json_->end() || found->is_null() ? nullptr : &*found;
    }
    void refuse(const char* key, const nlohmann::json& value, const std::string& fix) {
        std::string shown = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        if (shown.size() > 60) shown = shown.substr(0, 60) + "...";
        problems_.add(Error{Errc::bad_model_config, source_ + ": key '" + key + "' is " + shown, fix});
    }

    const nlohmann::json* json_;
    std::string source_;
    std::set<std::string, std::less<>> known_;
    config::Problems problems_;
};

enum class SchedulerClass : std::uint8_t { ddpm, ddim, pndm, euler, euler_ancestral, dpm_solver, unipc, flow_euler };

inline constexpr std::array<NamedValue<SchedulerClass>, 8> scheduler_classes{{
    {"DDPMScheduler", SchedulerClass::ddpm},
    {"DDIMScheduler", SchedulerClass::ddim},
    {"PNDMScheduler", SchedulerClass::pndm},
    {"EulerDiscreteScheduler", SchedulerClass::euler},
    {"EulerAncestralDiscreteScheduler", SchedulerClass::euler_ancestral},
    {"DPMSolverMultistepScheduler", SchedulerClass::dpm_solver},
    {"UniPCMultistepScheduler", SchedulerClass::unipc},
    {"FlowMatchEulerDiscreteScheduler", SchedulerClass::flow_euler},
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
    solver.steps_offset = keys.whole("steps_offset", 0);
}

inline LastLevel final_sigma(SchedulerKeys& keys) {
    return keys.choice(
        "final_sigmas_type", LastLevel::clean,
        std::array<NamedValue<LastLevel>, 2>{{{"zero", LastLevel::clean}, {"sigma_min", LastLevel::first}}});
}

inline void no_other_sigmas(SchedulerKeys& keys) {
    for (const char* key : {"use_exponential_sigmas", "use_beta_sigmas"}) keys.only(key, false);
}

inline void multistep_keys(SchedulerKeys& keys, SolverOptions& solver) {
    solver.order = keys.whole("solver_order", 2);
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

inline void solver_keys(SchedulerKeys& keys, SchedulerClass of, SolverOptions& solver) {
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
            multistep_keys(keys, solver);
            keys.only("algorithm_type", "dpmsolver++");
            solver.term = keys.choice("solver_type", MultistepTerm::midpoint,
                                      std::array<NamedValue<MultistepTerm>, 2>{
                                          {{"midpoint", MultistepTerm::midpoint}, {"heun", MultistepTerm::heun}}});
            keys.only("euler_at_final", false);
            keys.only("use_lu_lambdas", false);
            keys.only("variance_type", nullptr);
            keys.only("lambda_min_clipped", nullptr);
            break;
        case SchedulerClass::unipc:
            solver.solver = Solver::unipc;
            multistep_keys(keys, solver);
            solver.b = keys.choice("solver_type", UniPcB::bh2,
                                   std::array<NamedValue<UniPcB>, 2>{{{"bh1", UniPcB::bh1}, {"bh2", UniPcB::bh2}}});
            keys.only("predict_x0", true);
            keys.only("disable_corrector", nlohmann::json::array());
            keys.only("solver_p", nullptr);
            break;
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
        detail::solver_keys(keys, of->value, config.solver);
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
