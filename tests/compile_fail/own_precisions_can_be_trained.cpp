// tests/compile_fail/own_precisions_can_be_trained.cpp - a precision policy of one's own in double gets ST0129.

#include <strata/policy/setup.hpp>

using namespace strata;

template <class Element>
struct MyPrecision {
    using slot = slot::Numerics;
    using element = Element;
    using kept = Element;
    static constexpr bool has_master = false, scales_loss = false;
};

#ifdef STRATA_BAD
using Mine = Setup<MyPrecision<double>>;
#else
using Mine = Setup<MyPrecision<float>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return sizeof(Mine::precision::element) + Mine::precision::has_master + Mine::precision::scales_loss > 0; }
