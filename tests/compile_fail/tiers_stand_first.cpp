// tests/compile_fail/tiers_stand_first.cpp - a tier after what it holds gets ST0103, and nothing more.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<3>, OffloadTarget<Parameters, Nvme>>;
#else
using Mine = Setup<ZeroStage<3>, OffloadTarget<Nvme, Parameters>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return Mine::sharding::stage + Mine::offload::enabled + Mine::parameter_offload::enabled +
           Mine::precision::has_master;
}
