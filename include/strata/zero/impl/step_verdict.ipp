#pragma once
// strata/zero/impl/step_verdict.ipp - loss scale first, then numbers that are not finite.

#include <cmath>
#include <limits>
#include <string>

#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>
#include <strata/zero/parts/step_verdict.hpp>

namespace strata::zero {

STRATA_INLINE StepResult verdict_on_step(std::int64_t step, bool loss_is_finite, core::FunctionRef<double()> norm,
                                         Scaler& scaler, NonFiniteSteps& non_finite) {
    StepResult result{.step = step - 1, .skipped = true, .loss_scale = scaler.value()};
    const auto not_finite = [&](std::string_view what) {
        non_finite.met(step, what);
        result.non_finite = true;
        return result;
    };
    if (!loss_is_finite) {
        result.grad_norm = std::numeric_limits<double>::quiet_NaN();
        return not_finite("loss");
    }
    result.grad_norm = norm();
    if (scaler.scales()) {
        const auto verdict = scaler.update(!std::isfinite(result.grad_norm));
        if (verdict.skip) return result;
        result.grad_norm *= verdict.unscale;
    }
    if (!std::isfinite(result.grad_norm)) return not_finite("gradient norm");
    non_finite.passed();
    result.step = step;
    result.skipped = false;
    return result;
}

STRATA_INLINE void check_learning_rate(double lr, std::int64_t step) {
    if (lr >= 0.0 && std::isfinite(lr)) return;
    throw Error{Errc::bad_learning_rate,
                "the learning rate of step " + std::to_string(step) + " is " + OptionCheck::shown(lr),
                "use a schedule whose rate is finite and not below 0 at every step of the run"};
}

}  // namespace strata::zero
