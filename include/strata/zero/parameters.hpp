#pragma once
// strata/zero/parameters.hpp - the tensors of a model that an engine trains.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/zero/unit.hpp>

namespace strata::zero {

/// A parameter as a model registered it.
struct Parameter {
    std::string name;        ///< as in the state dict: "block0.linear.weight"
    at::Tensor tensor;       ///< the model's own tensor, not a copy
    std::int32_t unit = -1;  ///< number of the unit it belongs to, in registration order; -1 outside of units
    std::shared_ptr<UnitLink> link{};  ///< of that unit, where there is one
};

namespace detail {

template <class Module>
void collect_parameters(Module& module, const std::string& prefix, std::int32_t unit, std::shared_ptr<UnitLink> link,
                        std::int32_t& units, std::vector<Parameter>& found) {
    const auto* const marked = dynamic_cast<const UnitBase*>(&module);
    if (unit < 0 && marked != nullptr) {
        unit = units++;
        link = marked->link();
    }
    for (const auto& item : module.named_parameters(/*recurse=*/false)) {
        const at::Tensor& tensor = item.value();
        if (!tensor.defined()) continue;
        const auto seen = std::find_if(found.begin(), found.end(),
                                       [&](const Parameter& other) { return other.tensor.is_same(tensor); });
        if (seen == found.end()) {
            found.push_back({prefix + item.key(), tensor, unit, link});
        } else if (seen->unit != unit) {
            seen->unit = -1;
            seen->link = nullptr;
        }
    }
    for (const auto& item : module.named_children()) {
        collect_parameters(*item.value(), prefix + item.key() + ".", unit, link, units, found);
    }
}

}  // namespace detail

/// Every parameter of a model once, in registration order, frozen ones included.
///
/// A tensor registered under two names (tied weights) appears under the first one only; in two units it belongs to none.
///
///   Module  a torch::nn::Module; a template argument so that this header needs no torch/nn
template <class Module>
[[nodiscard]] std::vector<Parameter> parameters_of(Module& module) {
    std::vector<Parameter> found;
    std::int32_t units = 0;
    detail::collect_parameters(module, "", -1, nullptr, units, found);
    return found;
}

}  // namespace strata::zero
