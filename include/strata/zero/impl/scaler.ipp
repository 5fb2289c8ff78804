#pragma once
// strata/zero/impl/scaler.ipp - the loss scale by name.

#include <strata/zero/parts/scaler.hpp>

namespace strata::zero {

STRATA_INLINE std::map<std::string, double> Scaler::scalars() const {
    if (!scales_) return {};
    const optim::LossScale::State& state = scale_.state();
    return {{"loss_scale", state.scale},
            {"loss_scale_iteration", static_cast<double>(state.iteration)},
            {"loss_scale_last_overflow", static_cast<double>(state.last_overflow)},
            {"loss_scale_hysteresis_left", static_cast<double>(state.hysteresis_left)}};
}

STRATA_INLINE void Scaler::restore(const std::map<std::string, double>& values) {
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

}  // namespace strata::zero
