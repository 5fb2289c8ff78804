// tests/compile_fail/parameters_on_nvme_are_not_built_yet.cpp - OffloadTarget<Nvme, Parameters> gets ST0005.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<3>, OffloadTarget<Nvme, Parameters>>;
#else
using Mine = Setup<ZeroStage<2>, OffloadTarget<Nvme>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
