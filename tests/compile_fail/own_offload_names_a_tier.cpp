// tests/compile_fail/own_offload_names_a_tier.cpp - an offload policy of a user's own without a tier gets ST0121.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Tapes {
    using slot = slot::Offload;
#ifndef STRATA_BAD
    using tier = Cpu;
#endif
};
using Mine = Setup<ZeroStage<2>, Tapes>;

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + static_cast<int>(Mine::offload::tier::place); }
