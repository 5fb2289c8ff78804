// tests/compile_fail/offload_names_its_tier_first.cpp - OffloadTarget<Parameters, Nvme> gets ST0102 and nothing else.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<3>, OffloadTarget<Parameters, Nvme>>;
#else
using Mine = Setup<ZeroStage<3>, OffloadTarget<Nvme, Parameters>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::parameter_offload::enabled; }
