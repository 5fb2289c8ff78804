#pragma once
// strata/policy/optimizer.hpp - Optimizer<Rule>: how a gradient changes a parameter.

#include <strata/core/policy.hpp>

namespace strata {

struct AdamW;  ///< strata/optim/adamw.hpp
struct Lion;   ///< strata/optim/lion.hpp

/// Names the update rule.
///
///   Rule  AdamW, Lion, or a type of your own that satisfies optim::UpdateRule
template <class Rule>
struct Optimizer {
    using slot = slot::Update;
    using rule = Rule;
};

}  // namespace strata
