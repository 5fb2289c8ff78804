// tests/compile_fail/exceptions_are_formats.cpp - an exception that is no Except<Format> gets ST0144.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<Precision<Bf16, Fp32>, ZeroStage<2>>;
#else
using Mine = Setup<Precision<Bf16, Except<Fp32>>, ZeroStage<2>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return sizeof(Mine::precision::element) + Mine::precision::has_master + Mine::precision::scales_loss > 0; }
