#pragma once
// examples/own_sharding.hpp - a sharding of one's own: three facts, of which everything else follows.
//
// ZeRO's third stage shards gradients too, so that every micro-batch of a step is reduced on its own. Here every rank
// keeps whole gradients beside its shards of parameters and state: more memory, and what a step may reduce at once.

#include <strata/policy/setup.hpp>

namespace my {

//! [sharding]
/// Optimizer state and parameters are sharded, gradients are whole.
struct WholeGradients {
    using slot = strata::slot::Sharding;
    static constexpr strata::ShardedOver shards_state = strata::ShardedOver::world;
    static constexpr strata::ShardedOver shards_gradients = strata::ShardedOver::nothing;
    static constexpr strata::ShardedOver shards_parameters = strata::ShardedOver::world;
};
static_assert(strata::ShardingPolicy<WholeGradients>);
//! [sharding]

}  // namespace my
