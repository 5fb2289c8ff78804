// tests/compile_fail/updates_happen_at_a_known_moment.cpp - Update of something that is no moment gets ST0107.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<2>, Update<Adam>>;
#else
using Mine = Setup<ZeroStage<2>, Update<InBackward>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() {
    return Mine::sharding::stage + Mine::offload::enabled + Mine::gradient_offload::enabled +
           Mine::timing::in_backward + Mine::precision::has_master;
}
