#pragma once
// strata/diffusion/scheduler_config.hpp - the scheduler_config.json that a published model has beside its weights.

#include <filesystem>
#include <string>
#include <variant>

#include <nlohmann/json_fwd.hpp>

#include <strata/core/inline.hpp>
#include <strata/diffusion/ddpm_schedule.hpp>
#include <strata/diffusion/flow_schedule.hpp>
#include <strata/diffusion/prediction.hpp>
#include <strata/diffusion/solver.hpp>

namespace strata::diffusion {

/// What such a file says: how a model was trained, and how its authors draw.
struct SchedulerConfig {
    std::variant<DdpmScheduleOptions, FlowScheduleOptions> schedule;
    Prediction prediction = Prediction::epsilon;
    SolverOptions solver = {};  ///< `steps` is in no such file, and keeps its default
    /// What the authors draw with where that is not here, "HeunDiscreteScheduler" say, so that `solver` stands in for it. Empty: nothing does.
    std::string not_here{};

    [[nodiscard]] bool is_flow() const noexcept { return std::holds_alternative<FlowScheduleOptions>(schedule); }
    friend bool operator==(const SchedulerConfig&, const SchedulerConfig&) = default;
};

/// Reads the configuration of DDPMScheduler, DDIMScheduler, PNDMScheduler, EulerDiscreteScheduler,
/// EulerAncestralDiscreteScheduler, DPMSolverMultistepScheduler, UniPCMultistepScheduler and
/// FlowMatchEulerDiscreteScheduler of diffusers, with the defaults that each class has for keys that are absent. For
/// PNDM, which is not here, ddim takes the same timesteps. Keys that only another of these classes has are passed over,
/// as there: published files carry many. DEISMultistepScheduler, LMSDiscreteScheduler, HeunDiscreteScheduler,
/// KDPM2DiscreteScheduler, KDPM2AncestralDiscreteScheduler, DPMSolverSDEScheduler and DPMSolverSinglestepScheduler draw in ways that are not
/// here, and train as the others do: euler stands in for them.
///
///   source  the file's name, for messages
/// Throws Errc::bad_model_config with everything that is wrong: a class or key that is unknown, a value that is not
/// implemented, or of a wrong type.
[[nodiscard]] SchedulerConfig scheduler_config_of(const nlohmann::json& json, const std::string& source);

/// The same of a file. Throws also Errc::unreadable_config for a file that is missing or no JSON. -Infinity, which
/// Python writes into such files, is read as null.
[[nodiscard]] SchedulerConfig load_scheduler_config(const std::filesystem::path& file);

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/scheduler_config.ipp>
#endif
