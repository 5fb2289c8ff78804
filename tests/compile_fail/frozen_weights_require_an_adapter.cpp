// tests/compile_fail/frozen_weights_require_an_adapter.cpp - weights that are trained and quantised get ST0151.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<3>, FrozenWeights<Nf4>>;
#else
using Mine = Setup<ZeroStage<3>, FrozenWeights<Nf4>, Adapter<Lora>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::frozen_weights::quantises + Mine::adaptation::enabled; }
