#pragma once
// strata/models/adaptable_model.hpp - AdaptableModel: a model that can be asked what it predicts without its adapters.

#include <memory>
#include <utility>

#include <strata/models/layer_adapter.hpp>

namespace strata::models {

/// Adapters do not act while it lives.
class AdaptersOff {
public:
    explicit AdaptersOff(std::shared_ptr<AdapterSwitch> acts) : acts_{std::move(acts)}, was_on_{acts_->on} {
        acts_->on = false;
    }
    AdaptersOff(const AdaptersOff&) = delete;
    AdaptersOff& operator=(const AdaptersOff&) = delete;
    ~AdaptersOff() { acts_->on = was_on_; }

private:
    std::shared_ptr<AdapterSwitch> acts_;
    bool was_on_;
};

/// What a model derives from whose loss looks at its own prediction without adapters. A model that does not may have adapters too.
class AdaptableModel {
public:
    virtual ~AdaptableModel() = default;
    /// Of all its layers' adapters. Never nullptr.
    [[nodiscard]] virtual std::shared_ptr<AdapterSwitch> adapter_switch() const { return switch_; }

    /// What `predict` returns without adapters, to be a target and nothing else: the answer of a picture that keeps the model as it was
    /// (is_regularisation_data). What the model was asked for where there are none. Graphs may be recorded meanwhile, so that at
    /// ZeroStage<3> ranks with pictures of both kinds go different ways; nothing in it requires a gradient.
    template <class Predict>
    [[nodiscard]] auto without_adapters(Predict&& predict) const {
        const AdaptersOff off{adapter_switch()};
        return std::forward<Predict>(predict)().detach();
    }

protected:
    AdaptableModel() = default;
    AdaptableModel(const AdaptableModel&) = default;
    AdaptableModel& operator=(const AdaptableModel&) = default;

private:
    std::shared_ptr<AdapterSwitch> switch_ = std::make_shared<AdapterSwitch>();
};

}  // namespace strata::models
