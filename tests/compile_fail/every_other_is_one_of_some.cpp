// tests/compile_fail/every_other_is_one_of_some.cpp - EveryOther<0> gets ST0135.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<Recompute<EveryOther<0>>, ZeroStage<2>>;
#else
using Mine = Setup<Recompute<EveryOther<3>>, ZeroStage<2>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::recompute::any + Mine::recompute::recomputes(0, 1); }
