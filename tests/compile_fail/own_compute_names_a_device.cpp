// tests/compile_fail/own_compute_names_a_device.cpp - a policy of one's own for the device that names none gets ST0137.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Nowhere {
    using slot = slot::Computation;
};
struct Here {
    using slot = slot::Computation;
    using device = Host;
};

#ifdef STRATA_BAD
using Mine = Setup<Nowhere>;
#else
using Mine = Setup<Here>;
#endif

template <class Setup, class = typename Setup::compute::device>
inline constexpr int reads = 0;

// What a trainer reads of a composition: none of it may add a second error.
int main() { return reads<Mine>; }
