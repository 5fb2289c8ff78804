// tests/compile_fail/updates_in_backward_are_not_scaled.cpp - an update in backward with loss scaling gets ST0022.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, Update<InBackward>, Precision<Fp16>>;
#else
using Mine = Setup<ZeroStage<2>, Update<InBackward>, Precision<Bf16>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return Mine::sharding::stage + Mine::offload::enabled + Mine::gradient_offload::enabled +
           Mine::timing::in_backward + Mine::precision::has_master;
}
