// tests/compile_fail/sharding_shards_state_first.cpp - a sharding policy that shards gradients and not the state gets ST0126.

#include <strata/policy/setup.hpp>

using namespace strata;

template <ShardedOver state>
struct Mixture {
    using slot = slot::Sharding;
    static constexpr ShardedOver shards_state = state, shards_gradients = ShardedOver::world,
                                 shards_parameters = ShardedOver::nothing;
};

#ifdef STRATA_BAD
using Mine = Setup<Mixture<ShardedOver::nothing>, OffloadTarget<Cpu>>;
#else
using Mine = Setup<Mixture<ShardedOver::world>, OffloadTarget<Cpu>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return static_cast<int>(Mine::sharding::shards_state) + Mine::offload::enabled; }
