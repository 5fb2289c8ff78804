// tests/compile_fail/facts_are_constexpr.cpp - a sharding whose facts are defined elsewhere gets ST0125.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Elsewhere {
    using slot = slot::Sharding;
#ifdef STRATA_BAD
    static const ShardedOver shards_state;
#else
    static constexpr ShardedOver shards_state = ShardedOver::world;
#endif
    static constexpr ShardedOver shards_gradients = ShardedOver::nothing;
    static constexpr ShardedOver shards_parameters = ShardedOver::nothing;
};
using Mine = Setup<Elsewhere>;

int main() { return sizeof(Mine::sharding) == 0; }
