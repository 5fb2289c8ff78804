// tests/compile_fail/gradient_offload_requires_stage_two.cpp - offload of gradients that are whole everywhere gets ST0020.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<1>, OffloadTarget<Cpu, Gradients>>;
#else
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu, Gradients>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return Mine::sharding::stage + Mine::offload::enabled + Mine::parameter_offload::enabled +
           Mine::gradient_offload::enabled + Mine::precision::has_master;
}
