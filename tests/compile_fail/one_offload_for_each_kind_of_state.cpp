// tests/compile_fail/one_offload_for_each_kind_of_state.cpp - two places for one kind of state get ST0002.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu>, OffloadTarget<Nvme, OptimizerState, Parameters>>;
#else
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu>, OffloadTarget<Device, Parameters>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return Mine::sharding::stage + Mine::offload::enabled + Mine::parameter_offload::enabled +
           Mine::precision::has_master;
}
