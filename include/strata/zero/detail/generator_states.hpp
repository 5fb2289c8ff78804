#pragma once
// strata/zero/detail/generator_states.hpp - GeneratorStates: where libtorch's random numbers were, to draw the same ones again.

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

namespace strata::zero::detail {

/// States of the default generators of the CPU and of some tensors' CUDA devices.
class GeneratorStates {
public:
    explicit GeneratorStates(const std::vector<at::Tensor>& tensors) {
        add(at::globalContext().defaultGenerator(at::kCPU));
        for (const at::Tensor& tensor : tensors) {
            if (tensor.defined() && tensor.is_cuda()) add(at::globalContext().defaultGenerator(tensor.device()));
        }
    }
    /// The states that the same generators have now.
    [[nodiscard]] GeneratorStates now() const {
        GeneratorStates result;
        for (const auto& [generator, state] : states_) result.add(generator);
        return result;
    }
    void restore() const {
        for (auto [generator, state] : states_) {
            const std::lock_guard lock{generator.mutex()};
            generator.set_state(state);
        }
    }

private:
    GeneratorStates() = default;
    void add(at::Generator generator) {
        if (std::any_of(states_.begin(), states_.end(), [&](const auto& known) { return known.first == generator; }))
            return;
        const std::lock_guard lock{generator.mutex()};
        states_.emplace_back(generator, generator.get_state());
    }
    std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

/// While it lives, random numbers are those that followed after `then`.
class GeneratorsAsBefore {
public:
    explicit GeneratorsAsBefore(const GeneratorStates& then) : now_{then.now()} { then.restore(); }
    ~GeneratorsAsBefore() { now_.restore(); }
    GeneratorsAsBefore(const GeneratorsAsBefore&) = delete;
    GeneratorsAsBefore& operator=(const GeneratorsAsBefore&) = delete;

private:
    GeneratorStates now_;
};

}  // namespace strata::zero::detail
