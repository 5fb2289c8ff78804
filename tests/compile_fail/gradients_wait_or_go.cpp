// tests/compile_fail/gradients_wait_or_go.cpp - a tier for gradients that go at once gets ST0021.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, Update<InBackward>, OffloadTarget<Cpu, Gradients>>;
#else
using Mine = Setup<ZeroStage<2>, Update<AfterBackward>, OffloadTarget<Cpu, Gradients>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return Mine::sharding::stage + Mine::offload::enabled + Mine::gradient_offload::enabled +
           Mine::timing::in_backward + Mine::precision::has_master;
}
