// tests/compile_fail/own_averages_bring_their_class.cpp - an averaging policy without the class that keeps the average gets ST0128.

#include <strata/policy/setup.hpp>

using namespace strata;

struct OnlyItsName {
    using slot = slot::Averaging;
    static constexpr bool enabled = true;
};
struct Whole {
    using slot = slot::Averaging;
    static constexpr bool enabled = true;
    static constexpr Place place = Place::host;
    template <class Kept>
    class average;
};

#ifdef STRATA_BAD
using Mine = Setup<OnlyItsName>;
#else
using Mine = Setup<Whole>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Mine::averaging::enabled + static_cast<int>(Mine::averaging::place); }
