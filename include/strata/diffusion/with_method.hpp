#pragma once
// strata/diffusion/with_method.hpp - with_method(): the solver of a model's authors, exchanged for one of a name.

#include <strata/core/sampling_method.hpp>
#include <strata/diffusion/solver.hpp>

namespace strata::diffusion {

/// `of_model` with another solver. Which levels are visited stays as the model was made for. What only another solver has (order, eta, Karras'
/// levels for ddim) has its default, and so have two things that the classes of schedulers elsewhere have each of their own: where the last step
/// ends is kept among ddim and among euler, dpm_solver_2m and unipc, and is without noise otherwise, with noise on the way too; pictures are clipped by ddim
/// alone.
[[nodiscard]] constexpr SolverOptions with_method(SolverOptions of_model, SamplingMethod method) noexcept {
    const bool is_random = method == SamplingMethod::euler_ancestral || method == SamplingMethod::ddpm;
    const auto takes = [&](Solver solver) {
        const bool is_of_ddim = solver == Solver::ddim;
        if (is_random || is_of_ddim != (of_model.solver == Solver::ddim)) of_model.last = LastLevel::clean;
        if (!is_of_ddim) of_model.clip = 0;
        if (solver != of_model.solver) of_model.order = SolverOptions{}.order;
        of_model.solver = solver;
        of_model.eta = is_random ? 1 : 0;
        if (is_of_ddim) of_model.karras_sigmas = false;
        return of_model;
    };
    switch (method) {
        case SamplingMethod::euler:
        case SamplingMethod::euler_ancestral:
            break;
        case SamplingMethod::ddim:
        case SamplingMethod::ddpm:
            return takes(Solver::ddim);
        case SamplingMethod::dpm_solver_2m:
            return takes(Solver::dpm_solver_2m);
        case SamplingMethod::unipc:
            return takes(Solver::unipc);
    }
    return takes(Solver::euler);
}
static_assert(with_method({.solver = Solver::unipc, .order = 3}, SamplingMethod::euler_ancestral).eta == 1);
static_assert(with_method({.solver = Solver::ddim, .last = LastLevel::first}, SamplingMethod::euler).last ==
              LastLevel::clean);

}  // namespace strata::diffusion
