// tests/compile_fail/own_timing_says_when.cpp - a policy for the moment of the update that does not say it gets ST0138.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Whenever {
    using slot = slot::Timing;
};
struct AtOnce : Whenever {
    static constexpr bool in_backward = true;
};

#ifdef STRATA_BAD
using Mine = Setup<Whenever>;
#else
using Mine = Setup<AtOnce>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::timing::in_backward; }
