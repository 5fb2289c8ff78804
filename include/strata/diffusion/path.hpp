#pragma once
// strata/diffusion/path.hpp - Path: the levels that a sampler visits, from noise to the picture.

#include <cstdint>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/diffusion/ddpm_schedule.hpp>
#include <strata/diffusion/flow_schedule.hpp>
#include <strata/diffusion/prediction.hpp>
#include <strata/diffusion/solver.hpp>

namespace strata::diffusion {

/// n steps lead from levels[0] over n + 1 levels to levels[n]. The model is called at levels 0 ... n - 1.
struct Path {
    std::vector<double> timesteps;  ///< n: what the model is told; between two trained ones where levels are
    std::vector<Level> levels;      ///< n + 1, each with less noise than the one before
    double start = 1;               ///< times standard normal noise: what the first step begins with

    [[nodiscard]] int steps() const noexcept { return static_cast<int>(timesteps.size()); }
};

/// The levels of `options.steps` steps through a DdpmSchedule, as each solver's peers in other programs place them:
///
///   euler           leading, trailing, or evenly with fractions of timesteps; between two trained levels sigma / alpha
///                   is interpolated
///   ddim            leading, trailing or evenly, rounded to whole timesteps
///   dpm_solver_2m,  as ddim, but leading and linspace space one step more and leave out its last level, so that no
///   unipc           step is spent on next to no noise
/// Karras' levels span those that are spaced, for dpm_solver_2m and unipc the whole schedule. A level without signal
/// counts as alpha^2 = 2^-24, but for ddim.
/// Throws Errc::bad_diffusion_options: steps below 1 or above the schedule's, or steps_offset that leads past its end.
[[nodiscard]] Path path_of(const DdpmSchedule& schedule, const SolverOptions& options);

/// The levels of `options.steps` steps of a flow for pictures of that many tokens (FlowSchedule::mu), the same for all
/// solvers: from sigma 1 to 0. Timesteps are sigma * timesteps().
/// Throws Errc::bad_diffusion_options for steps below 1.
[[nodiscard]] Path path_of(const FlowSchedule& schedule, const SolverOptions& options, std::int64_t picture_tokens);

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/path.ipp>
#endif
