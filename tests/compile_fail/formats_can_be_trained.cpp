// tests/compile_fail/formats_can_be_trained.cpp - a number format that no kernel is there for gets ST0127.

#include <strata/policy/setup.hpp>

using namespace strata;

template <class Master>
struct MyFormat {
    using element = bf16;
    using kept = float;
    using master = Master;
    using scaler = LossScaling;
};

#ifdef STRATA_BAD
using Mine = Setup<Precision<MyFormat<double>>, ZeroStage<2>>;
#else
using Mine = Setup<Precision<MyFormat<float>>, ZeroStage<2>>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return sizeof(Mine::precision::element) + Mine::precision::has_master + Mine::precision::scales_loss > 0; }
