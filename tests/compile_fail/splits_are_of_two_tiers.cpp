// tests/compile_fail/splits_are_of_two_tiers.cpp - a split with more than all of it on one tier gets ST0120.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, OffloadTarget<Split<Cpu, Nvme, 130>>>;
#else
using Mine = Setup<ZeroStage<2>, OffloadTarget<Split<Cpu, Nvme, 30>>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + static_cast<int>(Mine::offload::tier::place); }
