// tests/compile_fail/policies_fill_a_known_slot.cpp - a policy of a slot that strata does not read gets ST0001.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Mistyped {
    using slot = struct Shardinng;
};
struct Meant {
    using slot = slot::Sharding;
    static constexpr ShardedOver shards_state = ShardedOver::world;
    static constexpr ShardedOver shards_gradients = ShardedOver::nothing, shards_parameters = ShardedOver::nothing;
};

#ifdef STRATA_BAD
using Mine = Setup<Mistyped>;
#else
using Mine = Setup<Meant>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return static_cast<int>(Mine::sharding::shards_state) + Mine::offload::enabled + Mine::precision::has_master;
}
