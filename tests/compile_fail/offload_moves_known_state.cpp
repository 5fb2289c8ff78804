// tests/compile_fail/offload_moves_known_state.cpp - offload of an unknown kind of state gets ST0102.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu, Bf16>>;
#else
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu, OptimizerState>, Precision<Bf16>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return Mine::sharding::stage + Mine::offload::enabled + Mine::parameter_offload::enabled +
           Mine::precision::has_master;
}
