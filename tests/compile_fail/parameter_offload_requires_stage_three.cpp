// tests/compile_fail/parameter_offload_requires_stage_three.cpp - offload of parameters that are not sharded gets ST0008.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu, Parameters>>;
#else
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu, OptimizerState>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return Mine::sharding::stage + Mine::offload::enabled + Mine::parameter_offload::enabled +
           Mine::precision::has_master;
}
