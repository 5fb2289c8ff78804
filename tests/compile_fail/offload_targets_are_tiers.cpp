// tests/compile_fail/offload_targets_are_tiers.cpp - OffloadTarget<int> gets ST0103.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, OffloadTarget<int>>;
#else
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
