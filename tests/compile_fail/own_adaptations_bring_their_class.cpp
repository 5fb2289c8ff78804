// tests/compile_fail/own_adaptations_bring_their_class.cpp - a policy about adapters without what attaches them gets ST0150.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Mine {
    using slot = strata::slot::Adaptation;
    static constexpr bool enabled = true;
    using kind = int;
#ifndef STRATA_BAD
    class work {};
#endif
};

// What a trainer reads of a composition: none of it may add a second error.
int main() { return Setup<Mine>::adaptation::enabled; }
