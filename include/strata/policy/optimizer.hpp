#pragma once
// strata/policy/optimizer.hpp - Optimizer<Rule>: how a gradient changes a parameter.

#include <strata/core/policy.hpp>

namespace strata {

struct Adagrad;  ///< strata/optim/adagrad.hpp
struct Adam;     ///< strata/optim/adam.hpp
struct AdamW;    ///< strata/optim/adamw.hpp
struct Lamb;     ///< strata/optim/lamb.hpp
struct Lion;     ///< strata/optim/lion.hpp
struct Sgd;      ///< strata/optim/sgd.hpp

/// Names the update rule.
///
///   Rule  one of those above, or a type of your own that satisfies optim::UpdateRule
template <class Rule>
struct Optimizer {
    using slot = slot::Update;
    using rule = Rule;
};

}  // namespace strata
