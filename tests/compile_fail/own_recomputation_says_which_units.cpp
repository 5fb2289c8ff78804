// tests/compile_fail/own_recomputation_says_which_units.cpp - a policy for the activations that does not say which units gets ST0130.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Some {
    using slot = slot::Activations;
    static constexpr bool any = true;
};
struct TheLast : Some {
    static bool recomputes(std::int32_t unit, std::int32_t units) { return unit + 1 == units; }
};

#ifdef STRATA_BAD
using Mine = Setup<Some>;
#else
using Mine = Setup<TheLast>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::recompute::any + Mine::recompute::recomputes(0, 1); }
