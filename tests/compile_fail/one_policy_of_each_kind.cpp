// tests/compile_fail/one_policy_of_each_kind.cpp - two policies of one kind get ST0002.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<1>, Optimizer<Lion>, ZeroStage<2>>;
#else
using Mine = Setup<ZeroStage<1>, Optimizer<Lion>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
