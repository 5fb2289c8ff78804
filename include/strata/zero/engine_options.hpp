#pragma once
// strata/zero/engine_options.hpp - engine_options_t<Setup>: what a composition's Engine can be told; and what a step reports.

#include <cstdint>

#include <strata/options/engine_options.hpp>

namespace strata::zero {

/// EngineOptions with the composition's update rule and the options of its averaging policy.
///
///   Setup  Setup<Policies...>
template <class Setup>
using engine_options_t = EngineOptions<typename Setup::optimizer::rule, average_options_t<typename Setup::averaging>>;

/// What an optimizer step reports; the same on every rank.
struct StepResult {
    double grad_norm = 0.0;   ///< global 2-norm of the mean gradient, before clipping
    std::int64_t step = 0;    ///< steps done, this one included unless it was skipped
    bool skipped = false;     ///< weights and state are as before: fp16 gradients overflowed, or non_finite
    bool non_finite = false;  ///< skipped by OnNonFinite::skip; else nothing but the loss scale has changed
    double loss_scale = 1.0;  ///< that this step's gradients were made with
};

}  // namespace strata::zero
