// tests/compile_fail/s3_is_not_built_yet.cpp - Backend<S3> gets ST0006.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<Backend<S3>>;
#else
using Mine = Setup<Backend<Local>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::sharding::stage + Mine::offload::enabled + Mine::precision::has_master; }
