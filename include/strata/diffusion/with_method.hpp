#pragma once
// strata/diffusion/with_method.hpp - with_method(): the solver of a model's authors, exchanged for one of a name.

#include <strata/core/sampling_method.hpp>
#include <strata/diffusion/solver.hpp>

namespace strata::diffusion {

/// `of_model` with another solver. What the model was made for stays: which levels are visited, where the last step ends,
/// whether pictures are clipped. What only another solver has (order, eta, Karras' levels for ddim) has its default.
[[nodiscard]] constexpr SolverOptions with_method(SolverOptions of_model, SamplingMethod method) noexcept {
    const auto takes = [&](Solver solver) {
        if (solver != of_model.solver) of_model.order = SolverOptions{}.order;
        of_model.solver = solver;
        of_model.eta = method == SamplingMethod::euler_ancestral || method == SamplingMethod::ddpm ? 1 : 0;
        if (solver == Solver::ddim) of_model.karras_sigmas = false;
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

}  // namespace strata::diffusion
