// tests/compile_fail/stage_three_is_not_built_yet.cpp - ZeroStage<3> gets ST0004.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<3>>;
#else
using Mine = Setup<ZeroStage<2>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
