#pragma once
// strata/policy/optimizer.hpp - slot::Update, and Optimizer<Rule>: how a gradient changes a parameter.

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

struct Adagrad;  ///< strata/optim/adagrad.hpp
struct Adam;     ///< strata/optim/adam.hpp
struct AdamW;    ///< strata/optim/adamw.hpp
struct Lamb;     ///< strata/optim/lamb.hpp
struct Lion;     ///< strata/optim/lion.hpp
struct Sgd;      ///< strata/optim/sgd.hpp

template <class Rule>
struct Optimizer;

namespace rule {

template <class P>
struct UpdateNamesARule {
    static constexpr bool holds = requires { typename P::rule; };
    struct Report {
        static_assert(holds,
                      "[ST0134] An update policy of your own names no update rule. Fix: let it say `using rule = "
                      "strata::AdamW;`, with a rule that strata brings or one of your own, or write Optimizer<MyRule> "
                      "(docs/write-an-update-rule.md).");
    };
};

}  // namespace rule

namespace slot {

/// How a gradient changes a parameter.
struct Update {
    static constexpr const char* name = "Update";
    static constexpr const char* policy = "Optimizer<AdamW>";
    template <class... Ps>
    struct Members {
        using optimizer = select_t<Update, Optimizer<AdamW>, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Update, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::UpdateNamesARule<P>>;
};

}  // namespace slot

/// Names the update rule.
///
///   Rule  one of those above, or a type of your own that satisfies optim::UpdateRule
template <class Rule>
struct Optimizer {
    using slot = slot::Update;
    using rule = Rule;
};

}  // namespace strata
