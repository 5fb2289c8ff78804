#pragma once
// strata/diffusion/sampler.hpp - Sampler: from noise to samples by any solver, with any model that predicts.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include <ATen/core/Tensor.h>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/diffusion/path.hpp>
#include <strata/diffusion/prediction.hpp>
#include <strata/diffusion/solver.hpp>
#include <strata/diffusion/step_plan.hpp>

namespace strata::diffusion {

/// model(x, timestep) -> what it predicts, of the shape of x: the same for the U-Nets of SDXL and SD 1.5 (timesteps
/// 0 to 999) and a Flux transformer (sigma * 1000). x is alpha * x0 + sigma * noise as in training, fp32; the answer
/// may be of any type.
using Denoiser = core::FunctionRef<at::Tensor(const at::Tensor& x, double timestep)>;

/// What may be asked for while samples are drawn. Both may be empty.
struct DrawHooks {
    /// Standard normal noise of the shape and on the device of the samples for a step, for solvers with eta above 0.
    std::function<at::Tensor(int step)> fresh_noise = {};
    /// After each step: the samples it led to, and the pictures that the model saw in those before; for previews.
    std::function<void(int step, const at::Tensor& x, const at::Tensor& picture)> after_step = {};
};

/// A path, a solver's plan for it, and what the model predicts. Cheap to make, immutable, no tensors inside.
class Sampler {
public:
    /// Throws as plan_of() does, and Errc::bad_diffusion_options for epsilon on a path that begins without signal.
    Sampler(Path path, Prediction prediction, const SolverOptions& options);

    /// As above, for the path of a schedule.
    Sampler(const DdpmSchedule& schedule, Prediction prediction, const SolverOptions& options)
        : Sampler(path_of(schedule, options), prediction, options) {}
    Sampler(const FlowSchedule& schedule, const SolverOptions& options, std::int64_t picture_tokens)
        : Sampler(path_of(schedule, options, picture_tokens), Prediction::flow, options) {}

    [[nodiscard]] const Path& path() const noexcept { return path_; }
    [[nodiscard]] const StepPlan& plan() const noexcept { return plan_; }

    /// Samples, fp32, of the shape and on the device of `noise`, which is standard normal. The model is called once a
    /// step, without gradient recording. Deterministic; what is random comes in by `noise` and `hooks`. Local, if the
    /// model's call is.
    /// Throws Errc::bad_diffusion_options where the plan draws noise and hooks have none, and Errc::bad_value for a
    /// prediction of another shape.
    [[nodiscard]] at::Tensor draw(const at::Tensor& noise, Denoiser model, const DrawHooks& hooks = {}) const;

private:
    [[nodiscard]] at::Tensor picture_in(std::size_t step, const at::Tensor& x, Denoiser model) const;

    Path path_;
    StepPlan plan_;
    Prediction prediction_;
    double clip_;
};

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/sampler.ipp>
#endif
