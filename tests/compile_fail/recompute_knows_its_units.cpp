// tests/compile_fail/recompute_knows_its_units.cpp - Recompute<int> gets ST0104.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, Recompute<int>>;
#else
using Mine = Setup<ZeroStage<2>, Recompute<Blocks>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::recompute::any + Mine::averaging::enabled; }
