#pragma once
// strata/zero/parts/scaler.hpp - Scaler: the loss scale of an engine, or none, and how checkpoints name it.

#include <cstdint>
#include <map>
#include <string>

#include <strata/optim/loss_scale.hpp>

namespace strata::zero {

/// optim::LossScale where a precision has one; otherwise 1, for ever.
class Scaler {
public:
    Scaler(bool scales, const optim::LossScaleOptions& options) : scales_{scales}, scale_{options} {}

    [[nodiscard]] bool scales() const noexcept { return scales_; }
    [[nodiscard]] double value() const noexcept { return scales_ ? scale_.value() : 1.0; }
    /// Ends a step. Throws loss_scale_exhausted.
    optim::LossScale::Step update(bool overflow) {
        return scales_ ? scale_.update(overflow) : optim::LossScale::Step{};
    }

    /// Its state by name; empty where there is none. Names that are missing leave their value as it is.
    [[nodiscard]] std::map<std::string, double> scalars() const {
        if (!scales_) return {};
        const optim::LossScale::State& state = scale_.state();
        return {{"loss_scale", state.scale},
                {"loss_scale_iteration", static_cast<double>(state.iteration)},
                {"loss_scale_last_overflow", static_cast<double>(state.last_overflow)},
                {"loss_scale_hysteresis_left", static_cast<double>(state.hysteresis_left)}};
    }
    void restore(const std::map<std::string, double>& values) {
        optim::LossScale::State state = scale_.state();
        const auto restore = [&]<class Value>(const char* name, Value& value) {
            if (const auto found = values.find(name); found != values.end()) value = static_cast<Value>(found->second);
        };
        restore("loss_scale", state.scale);
        restore("loss_scale_iteration", state.iteration);
        restore("loss_scale_last_overflow", state.last_overflow);
        restore("loss_scale_hysteresis_left", state.hysteresis_left);
        scale_.restore(state);
    }

private:
    bool scales_;
    optim::LossScale scale_;
};

}  // namespace strata::zero
