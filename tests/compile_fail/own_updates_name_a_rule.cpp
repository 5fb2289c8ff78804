// tests/compile_fail/own_updates_name_a_rule.cpp - an update policy of one's own that names no rule gets ST0134.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Somehow {
    using slot = slot::Update;
};
struct AsSgd {
    using slot = slot::Update;
    using rule = Sgd;
};
template <class Setup, class = typename Setup::optimizer::rule>
inline constexpr int reads = 0;

#ifdef STRATA_BAD
using Mine = Setup<Somehow>;
#else
using Mine = Setup<AsSgd>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return reads<Mine>; }
