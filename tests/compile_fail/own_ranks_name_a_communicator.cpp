// tests/compile_fail/own_ranks_name_a_communicator.cpp - a policy of one's own for the communicator that names none gets ST0136.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Nobody {
    using slot = slot::Communication;
};
struct Alone {
    using slot = slot::Communication;
    using comm = comm::SelfComm;
};

#ifdef STRATA_BAD
using Mine = Setup<Nobody>;
#else
using Mine = Setup<Alone>;
#endif

template <class Setup, class = typename Setup::ranks::comm>
inline constexpr int reads = 0;

// What a trainer reads of a composition: none of it may add a second error.
int main() { return reads<Mine>; }
