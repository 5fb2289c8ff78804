#pragma once
// strata/policy/recompute.hpp - Recompute<What>: which activations are kept for backward, and which are made again.

#include <concepts>

#include <strata/core/policy.hpp>

namespace strata {

struct Blocks {};   ///< every Unit of the model
struct Nothing {};  ///< activations stay until backward has used them

/// Trades computation for memory. Recompute<Blocks> keeps only the inputs of every Unit and runs it again in backward
/// (Chen et al. 2016, arXiv:1604.06174): the activations of one unit at a time instead of all, for one more forward
/// pass, which is about a third more computation. Gradients keep their bits, dropout included.
///
///   What  Blocks or Nothing
template <class What>
struct Recompute {
    static_assert(std::same_as<What, Blocks> || std::same_as<What, Nothing>,
                  "[ST0104] Recompute<What> knows What = Blocks and Nothing. Fix: type one of these two.");
    using slot = slot::Activations;
    static constexpr bool blocks = std::same_as<What, Blocks>;
};

}  // namespace strata
