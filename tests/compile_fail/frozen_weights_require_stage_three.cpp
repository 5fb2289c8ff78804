// tests/compile_fail/frozen_weights_require_stage_three.cpp - quantised weights that no unit is gathered from get ST0152.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<Adapter<Lora>, FrozenWeights<Int8>, ZeroStage<2>>;
#else
using Mine = Setup<Adapter<Lora>, FrozenWeights<Int8>, ZeroStage<3>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::frozen_weights::quantises + Mine::adaptation::enabled; }
