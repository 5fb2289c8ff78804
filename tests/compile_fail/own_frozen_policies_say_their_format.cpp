// tests/compile_fail/own_frozen_policies_say_their_format.cpp - a policy for frozen weights without a format gets ST0156.

#include <strata/policy/setup.hpp>

using namespace strata;

struct OnlyThatTheyAre {
    using slot = slot::FrozenFormat;
    static constexpr bool quantises = true;
};
struct Whole {
    using slot = slot::FrozenFormat;
    static constexpr bool quantises = true;
    using format = Nf4;
};

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<3>, OnlyThatTheyAre, Adapter<Lora>>;
#else
using Mine = Setup<ZeroStage<3>, Whole, Adapter<Lora>>;
#endif

int main() { return Mine::frozen_weights::quantises ? 0 : 1; }
