#pragma once
// strata/train/any_engine.hpp - AnyEngine: a trainer's engine, whatever it is composed of.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/zero/compute_device.hpp>
#include <strata/zero/engine_options.hpp>
#include <strata/zero/state.hpp>

namespace strata::train {

/// What a trainer asks of its zero::Engine: a run and its checkpoints know no more of it, so that they are compiled once and not
/// for every composition. Costs a virtual call a pass or a step. Members, and what they throw, are the engine's.
class AnyEngine {
public:
    using StateSink = std::function<void(std::string_view kind, std::int64_t begin, std::span<const float> values)>;
    using StateSource = std::function<void(std::string_view kind, std::int64_t begin, std::span<float> values)>;
    using ByName = std::function<bool(std::string_view name)>;

    AnyEngine(const AnyEngine&) = delete;
    AnyEngine& operator=(const AnyEngine&) = delete;

    virtual void begin_step(double lr) = 0;
    virtual void backward(const at::Tensor& loss) = 0;
    virtual void backward_without_loss() = 0;
    virtual void discard_step() = 0;
    [[nodiscard]] virtual std::vector<double> gradient_norms() = 0;
    virtual zero::StepResult step(double lr, bool loss_is_finite) = 0;

    [[nodiscard]] virtual bool state_is_whole() const noexcept = 0;
    [[nodiscard]] virtual bool gathers_units() const noexcept = 0;
    virtual void hold_unit_of(const at::Tensor& parameter) = 0;
    virtual void drop_units() = 0;

    /// Of a composition without an average it is never in, and the calls do nothing.
    [[nodiscard]] virtual bool average_is_in() const noexcept = 0;
    virtual void swap_average() = 0;
    virtual void restart_average() = 0;

    [[nodiscard]] virtual std::vector<zero::StateOutline> state_outline() const = 0;
    virtual void read_state(const StateSink& sink) = 0;
    virtual void write_state(const StateSource& source, bool average) = 0;
    [[nodiscard]] virtual std::map<std::string, double> scalars() const = 0;
    virtual void restore_scalars(const std::map<std::string, double>& values) = 0;
    [[nodiscard]] virtual std::int64_t step_count() const noexcept = 0;
    virtual void set_step_count(std::int64_t steps) noexcept = 0;

    virtual void set_trainable(const ByName& trains) = 0;
    [[nodiscard]] virtual const std::vector<zero::ParameterInfo>& layout() const = 0;
    [[nodiscard]] virtual std::vector<zero::ParameterInfo> frozen_layout() const = 0;
    virtual void write_frozen(const ByName& wanted,
                              const std::function<void(const std::string& name, at::Tensor values)>& fill) = 0;

protected:
    AnyEngine() = default;
    ~AnyEngine() = default;
};

/// One that computes on this device.
template <zero::ComputeDevice Compute>
class AnyEngineOn : public AnyEngine {
public:
    using compute_device = Compute;

protected:
    ~AnyEngineOn() = default;
};

///   Engine  a zero::Engine
template <class Engine>
class EngineOf final : public AnyEngineOn<typename Engine::compute_device> {
public:
    using typename AnyEngine::ByName;
    using typename AnyEngine::StateSink;
    using typename AnyEngine::StateSource;

    ///   engine  outlives it
    explicit EngineOf(Engine& engine) noexcept : engine_{engine} {}

    void begin_step(double lr) override { engine_.begin_step(lr); }
    void backward(const at::Tensor& loss) override { engine_.backward(loss); }
    void backward_without_loss() override { engine_.backward_without_loss(); }
    void discard_step() override { engine_.discard_step(); }
    [[nodiscard]] std::vector<double> gradient_norms() override { return engine_.gradient_norms(); }
    zero::StepResult step(double lr, bool loss_is_finite) override { return engine_.step(lr, loss_is_finite); }

    [[nodiscard]] bool state_is_whole() const noexcept override { return engine_.state_is_whole(); }
    [[nodiscard]] bool gathers_units() const noexcept override { return engine_.gathers_units(); }
    void hold_unit_of(const at::Tensor& parameter) override { engine_.hold_unit_of(parameter); }
    void drop_units() override { engine_.drop_units(); }

    [[nodiscard]] bool average_is_in() const noexcept override { return engine_.average_is_in(); }
    void swap_average() override {
        if constexpr (requires(Engine & engine) { engine.swap_average(); }) engine_.swap_average();
    }
    void restart_average() override {
        if constexpr (requires(Engine & engine) { engine.restart_average(); }) engine_.restart_average();
    }

    [[nodiscard]] std::vector<zero::StateOutline> state_outline() const override { return engine_.state_outline(); }
    void read_state(const StateSink& sink) override { engine_.read_state(sink); }
    void write_state(const StateSource& source, bool average) override { engine_.write_state(source, average); }
    [[nodiscard]] std::map<std::string, double> scalars() const override { return engine_.scalars(); }
    void restore_scalars(const std::map<std::string, double>& values) override { engine_.restore_scalars(values); }
    [[nodiscard]] std::int64_t step_count() const noexcept override { return engine_.step_count(); }
    void set_step_count(std::int64_t steps) noexcept override { engine_.set_step_count(steps); }

    void set_trainable(const ByName& trains) override { engine_.set_trainable(trains); }
    [[nodiscard]] const std::vector<zero::ParameterInfo>& layout() const override { return engine_.layout(); }
    [[nodiscard]] std::vector<zero::ParameterInfo> frozen_layout() const override { return engine_.frozen_layout(); }
    void write_frozen(const ByName& wanted,
                      const std::function<void(const std::string& name, at::Tensor values)>& fill) override {
        engine_.write_frozen(wanted, fill);
    }

private:
    Engine& engine_;
};

}  // namespace strata::train
