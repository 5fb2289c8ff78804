// tests/compile_fail/frozen_weights_have_a_format.cpp - FrozenWeights of a type that is no format gets ST0155.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<3>, FrozenWeights<Bf16>, Adapter<Lora>>;
#else
using Mine = Setup<ZeroStage<3>, FrozenWeights<Int8>, Adapter<Lora>>;
#endif

// What an engine reads of a composition: none of it may add a second error.
int main() { return Mine::frozen_weights::quantises ? 0 : 1; }
