#pragma once
// strata/optim/impl/loss_scale.ipp - when the loss scale moves.

#include <algorithm>
#include <cmath>
#include <string>

#include <strata/optim/loss_scale.hpp>

namespace strata::optim {

STRATA_INLINE LossScale::LossScale(const LossScaleOptions& options)
    : options_{options}, state_{.scale = options.initial, .hysteresis_left = options.hysteresis} {
    OptionCheck check;
    check.part("loss_scale", options);
    check.finish();
}

STRATA_INLINE LossScale::Step LossScale::update(bool overflow) {
    const Step step{.skip = overflow, .unscale = 1.0 / state_.scale};
    if (!options_.dynamic) {
        ++state_.iteration;
        return step;
    }
    if (overflow) {
        if (state_.hysteresis_left == 1) {
            if (state_.scale == options_.minimum) {
                throw Error{
                    Errc::loss_scale_exhausted,
                    "gradients overflow although the loss scale is at its minimum, " + std::to_string(options_.minimum),
                    "lower the learning rate, or train in bf16"};
            }
            state_.scale = std::max(state_.scale / 2.0, options_.minimum);
        } else {
            --state_.hysteresis_left;
        }
        state_.last_overflow = state_.iteration;
    } else {
        if (options_.consecutive_hysteresis) state_.hysteresis_left = options_.hysteresis;
        const std::int64_t stable = state_.iteration - state_.last_overflow - 1;
        if (stable > 0 && stable % options_.window == 0) {
            state_.hysteresis_left = options_.hysteresis;
            state_.scale *= 2.0;
        }
    }
    ++state_.iteration;
    return step;
}

}  // namespace strata::optim
