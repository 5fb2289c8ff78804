#pragma once
// strata/train/unit_rules.hpp - what needs a model that names its units, and the sentences for one that does not.

#include <strata/core/rule.hpp>
#include <strata/policy/zero_stage.hpp>

namespace strata {

/// A model that says which of its blocks are units: `using Units = strata::UnitList<Block>;`, with at least one.
template <class M>
concept HasUnits = (M::Units::count > 0);

namespace rule {

///   Sharding  the composition's policy of slot::Sharding
template <class Sharding, class Model>
struct ModelHasUnits {
    static constexpr bool holds = Sharding::shards_parameters == ShardedOver::nothing || HasUnits<Model>;
    struct Report {
        static_assert(
            holds,
            "[ST0011] ZeroStage<3> gathers parameters unit by unit, and the model names no units. Fix: hold its "
            "blocks as std::shared_ptr<strata::Unit<Block>> and say `using Units = strata::UnitList<Block>;` in "
            "the model.");
    };
};

///   Activations  the composition's policy of slot::Activations
template <class Activations, class Model>
struct RecomputedModelHasUnits {
    static constexpr bool holds = !Activations::any || HasUnits<Model>;
    struct Report {
        static_assert(
            holds,
            "[ST0012] Recompute<Blocks> runs units again in backward, and the model names no units. Fix: hold its "
            "blocks as std::shared_ptr<strata::Unit<Block>> and say `using Units = strata::UnitList<Block>;` in "
            "the model, or drop Recompute.");
    };
};

}  // namespace rule
}  // namespace strata
