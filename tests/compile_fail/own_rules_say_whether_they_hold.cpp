// tests/compile_fail/own_rules_say_whether_they_hold.cpp - a policy whose `broken` is no rule gets ST0145.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Misspelt {
    static constexpr bool hold = false;
};
struct Rule {
    static constexpr bool holds = true;
};

struct Own {
    using slot = slot::Sharding;
    static constexpr ShardedOver shards_state = ShardedOver::world;
    static constexpr ShardedOver shards_gradients = ShardedOver::nothing, shards_parameters = ShardedOver::nothing;
#ifdef STRATA_BAD
    using broken = Misspelt;
#else
    using broken = Rule;
#endif
};
using Mine = Setup<Own>;

// What a trainer reads of a composition: none of it may add a second error.
int main() { return static_cast<int>(Mine::sharding::shards_state) + Mine::offload::enabled; }
