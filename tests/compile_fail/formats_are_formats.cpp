// tests/compile_fail/formats_are_formats.cpp - Precision of something that is no format gets ST0127.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<Precision<float>>;
#else
using Mine = Setup<Precision<Fp32>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return sizeof(Mine::precision::element) + Mine::precision::has_master + Mine::precision::scales_loss > 0; }
