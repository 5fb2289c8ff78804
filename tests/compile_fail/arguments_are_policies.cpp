// tests/compile_fail/arguments_are_policies.cpp - a type that is no policy gets ST0001.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Model {};

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<1>, Model>;
#else
using Mine = Setup<ZeroStage<1>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
