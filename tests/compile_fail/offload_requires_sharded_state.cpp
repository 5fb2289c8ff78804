// tests/compile_fail/offload_requires_sharded_state.cpp - offload of replicated state gets ST0003.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<OffloadTarget<Cpu>>;
#else
using Mine = Setup<OffloadTarget<Cpu>, ZeroStage<1>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
