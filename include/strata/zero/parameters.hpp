#pragma once
// strata/zero/parameters.hpp - the tensors of a model that an engine trains.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/zero/unit.hpp>

namespace strata::zero {

/// A parameter as a model registered it.
struct Parameter {
    std::string name;                  ///< as in the state dict: "block0.linear.weight"
    at::Tensor tensor;                 ///< the model's own tensor, not a copy
    std::int32_t unit = -1;            ///< number of the unit it belongs to, in registration order; -1 outside of units
    std::shared_ptr<UnitLink> link{};  ///< of that unit, where there is one
    bool excepted = false;             ///< it keeps the other format of Precision<Format, Except<Other>>
};

namespace detail {

/// The walk over a model. A tensor is looked up, not looked for: models have tens of thousands of parameters.
template <class Same>
class ParameterWalk {
public:
    template <class Module>
    void visit(Module& module, const std::string& prefix, std::int32_t unit, std::shared_ptr<UnitLink> link) {
        const auto* const marked = dynamic_cast<const UnitBase*>(&module);
        if (unit < 0 && marked != nullptr) {
            unit = units_++;
            link = marked->link();
            link->name = prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
        }
        for (const auto& item : module.named_parameters(/*recurse=*/false)) {
            const at::Tensor& tensor = item.value();
            if (!tensor.defined()) continue;
            const auto [seen, is_new] = place_of_.try_emplace(tensor.unsafeGetTensorImpl(), found_.size());
            if (is_new) {
                found_.push_back({prefix + item.key(), tensor, unit, link});
            } else if (Parameter& first = found_[seen->second]; first.unit != unit) {
                first.unit = -1;
                first.link = nullptr;
            }
        }
        for (const auto& item : module.named_children()) visit(*item.value(), prefix + item.key() + ".", unit, link);
    }

    [[nodiscard]] std::vector<Parameter> found() && { return std::move(found_); }

private:
    std::vector<Parameter> found_;
    std::unordered_map<const void*, std::size_t, std::hash<const void*>, Same> place_of_;  // in found_, by tensor
    std::int32_t units_ = 0;
};

}  // namespace detail

/// Every parameter of a model once, in registration order, frozen ones included.
///
/// A tensor registered under two names (tied weights) appears under the first one only; in two units it belongs to none.
/// The work grows with the number of parameters, not with its square.
///
///   Same    whether two tensors are one; a test counts with one of its own
///   Module  a torch::nn::Module; a template argument so that this header needs no torch/nn
template <class Same = std::equal_to<const void*>, class Module>
[[nodiscard]] std::vector<Parameter> parameters_of(Module& module) {
    detail::ParameterWalk<Same> walk;
    walk.visit(module, "", -1, nullptr);
    return std::move(walk).found();
}

}  // namespace strata::zero
