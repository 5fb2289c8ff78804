#pragma once
// strata/optim/loss_scale.hpp - LossScale: fp16's loss is multiplied by as much as its gradients bear.

#include <cstdint>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/option_check.hpp>
#include <strata/options/loss_scale_options.hpp>

namespace strata::optim {

/// The dynamic loss scale of mixed precision training (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2), with
/// DeepSpeed's rule: halve at an overflow (with hysteresis), double after `window` steps without one.
///
///   loss.mul(scale.value()).backward();                       // gradients are scale.value() times too large
///   const double sum = ...;                                   // sum_of_squares() over all ranks: same on every rank
///   const auto step = scale.update(overflowed(sum));
///   if (!step.skip) update<Rule>(..., factor * step.unscale, ...);
///
/// update() hands out the inverse of the scale that the gradients were made with, not of the one it has just moved to.
/// Every rank calls it with the same verdict and so keeps the same scale.
class LossScale {
public:
    /// Throws bad_value for settings out of range.
    explicit LossScale(const LossScaleOptions& options = {});

    /// What to multiply the loss by.
    [[nodiscard]] double value() const noexcept { return state_.scale; }

    /// What to do with the gradients that were made with value().
    struct Step {
        bool skip = false;     ///< an overflow: leave weights, states and step counters as they are
        double unscale = 1.0;  ///< gradients times this are the loss's own
    };
    /// Ends a step. Throws loss_scale_exhausted at an overflow that would take the scale below its minimum.
    Step update(bool overflow);

    /// What a checkpoint keeps.
    struct State {
        double scale = 65536.0;
        std::int64_t iteration = 0;
        std::int64_t last_overflow = -1;
        int hysteresis_left = 2;
        friend bool operator==(const State&, const State&) = default;
    };
    [[nodiscard]] const State& state() const noexcept { return state_; }
    void restore(const State& state) noexcept { state_ = state; }

private:
    LossScaleOptions options_;
    State state_;
};

}  // namespace strata::optim

#ifndef STRATA_COMPILED
#include <strata/optim/impl/loss_scale.ipp>
#endif
