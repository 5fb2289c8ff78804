#pragma once
// strata/train/named_norm.hpp - NamedNorm: the gradient norm of a part of a model.

#include <string>

namespace strata::train {

struct NamedNorm {
    std::string name;  ///< as in the state dict: "block0", "block0.linear", "block0.linear.weight"
    double norm = 0;   ///< 2-norm of its mean gradient, before clipping
    friend bool operator==(const NamedNorm&, const NamedNorm&) = default;
};

}  // namespace strata::train
