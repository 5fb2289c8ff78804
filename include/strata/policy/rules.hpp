#pragma once
// strata/policy/rules.hpp - which policies cannot be composed with one another, and the sentence a user gets instead.

#include <concepts>

#include <strata/core/rule.hpp>
#include <strata/policy/place.hpp>
#include <strata/policy/tier.hpp>
#include <strata/policy/zero_stage.hpp>

namespace strata::rule {

/// What every rank has in whole stays where it is: on Device, or a tier that derives from it.
template <class Sharding, class Offload>
struct OffloadNeedsShardedState {
    static constexpr bool holds =
        std::derived_from<typename Offload::tier, Device> || Sharding::shards_state != ShardedOver::nothing;
    struct Report {
        static_assert(holds,
                      "[ST0003] OffloadTarget<...> moves sharded optimizer state, but ZeroStage<0> replicates it. "
                      "Fix: use ZeroStage<1> or higher, or drop OffloadTarget.");
    };
};

template <class Sharding, class ParameterOffload>
struct ParameterOffloadNeedsShardedParameters {
    static constexpr bool holds =
        ParameterOffload::tier::place == Place::device || Sharding::shards_parameters != ShardedOver::nothing;
    struct Report {
        static_assert(holds,
                      "[ST0008] OffloadTarget<..., Parameters> moves parameter shards, but only ZeroStage<3> shards "
                      "parameters. Fix: use ZeroStage<3>, or drop Parameters from OffloadTarget.");
    };
};

}  // namespace strata::rule
