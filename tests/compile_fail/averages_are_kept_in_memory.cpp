// tests/compile_fail/averages_are_kept_in_memory.cpp - a moving average on disk gets ST0105.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, Ema<Nvme>>;
#else
using Mine = Setup<ZeroStage<2>, Ema<Cpu>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::recompute::any + Mine::averaging::enabled; }
