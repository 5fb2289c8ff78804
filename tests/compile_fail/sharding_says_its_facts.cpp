// tests/compile_fail/sharding_says_its_facts.cpp - a sharding policy of one's own that says a stage only gets ST0125.

#include <strata/policy/setup.hpp>

using namespace strata;

struct OfAStage {
    using slot = slot::Sharding;
    static constexpr int stage = 7;
};
struct Mixed {
    using slot = slot::Sharding;
    static constexpr ShardedOver shards_state = ShardedOver::world, shards_gradients = ShardedOver::world,
                                 shards_parameters = ShardedOver::nothing;
};

#ifdef STRATA_BAD
using Mine = Setup<OfAStage, OffloadTarget<Cpu>>;
#else
using Mine = Setup<Mixed, OffloadTarget<Cpu>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return static_cast<int>(Mine::sharding::shards_state) + Mine::offload::enabled; }
