// tests/compile_fail/nvme_is_not_built_yet.cpp - OffloadTarget<Nvme> gets ST0005.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, OffloadTarget<Nvme>>;
#else
using Mine = Setup<ZeroStage<2>, OffloadTarget<Cpu>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
