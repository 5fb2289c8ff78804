// tests/compile_fail/stages_are_zero_to_three.cpp - ZeroStage<4> gets ST0101.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<OffloadTarget<Cpu>, ZeroStage<4>, OffloadTarget<Nvme, Parameters>>;
#else
using Mine = Setup<OffloadTarget<Cpu>, ZeroStage<3>, OffloadTarget<Nvme, Parameters>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
