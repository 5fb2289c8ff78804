#pragma once
// strata/models/impl/unet_drawing.ipp - the solver of U-Nets.

#include <strata/diffusion/with_method.hpp>
#include <strata/models/unet_drawing.hpp>

namespace strata::models {

STRATA_INLINE diffusion::SolverOptions unet_solver(const diffusion::SolverOptions& of_authors,
                                                   const diffusion::DdpmSchedule& schedule,
                                                   const SamplerOptions& options) {
    diffusion::SolverOptions solver = options.method ? diffusion::with_method(of_authors, *options.method) : of_authors;
    solver.steps = options.steps;
    if (schedule.ends_in_noise()) solver.spacing = diffusion::Spacing::trailing;
    return solver;
}

}  // namespace strata::models
