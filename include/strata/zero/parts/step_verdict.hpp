#pragma once
// strata/zero/parts/step_verdict.hpp - whether an optimizer step is made, by what its numbers say.

#include <cstdint>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/non_finite.hpp>
#include <strata/zero/parts/scaler.hpp>

namespace strata::zero {

/// What step() reports of a step that is about to be made, with the norm of unscaled gradients; or of one that is skipped.
/// Throws non_finite and loss_scale_exhausted, where the run ends. The same on every rank, because what it is told is.
///
///   step            its number, from 1
///   loss_is_finite  where it is not, no loss scale mends that, and nobody needs the norm
///   norm            asked for the norm of scaled gradients
[[nodiscard]] StepResult verdict_on_step(std::int64_t step, bool loss_is_finite, core::FunctionRef<double()> norm,
                                         Scaler& scaler, NonFiniteSteps& non_finite);

/// Throws bad_learning_rate for a rate that no step can be made with. Local.
void check_learning_rate(double lr, std::int64_t step);

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/step_verdict.ipp>
#endif
