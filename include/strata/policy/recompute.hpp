#pragma once
// strata/policy/recompute.hpp - Recompute<What>: which activations are kept for backward, and which are made again.

#include <concepts>

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

struct Blocks {};   ///< every Unit of the model
struct Nothing {};  ///< activations stay until backward has used them

namespace rule {

template <class What>
struct RecomputesBlocksOrNothing {
    static constexpr bool holds = std::same_as<What, Blocks> || std::same_as<What, Nothing>;
    struct Report {
        static_assert(holds, "[ST0104] Recompute<What> knows What = Blocks and Nothing. Fix: type one of these two.");
    };
};

}  // namespace rule

/// Trades computation for memory. Recompute<Blocks> keeps only the inputs of every Unit and runs it again in backward
/// (Chen et al. 2016, arXiv:1604.06174): the activations of one unit at a time instead of all, for one more forward
/// pass, which is about a third more computation. Gradients keep their bits, dropout included.
///
///   What  Blocks or Nothing
template <class What>
struct Recompute {
    using slot = slot::Activations;
    using broken = rule::first_broken_t<rule::RecomputesBlocksOrNothing<What>>;
    static constexpr bool blocks = std::same_as<What, Blocks>;
};

}  // namespace strata
