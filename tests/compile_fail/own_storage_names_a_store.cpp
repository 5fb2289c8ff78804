// tests/compile_fail/own_storage_names_a_store.cpp - a storage policy of one's own that names no store gets ST0133.

#include <strata/policy/setup.hpp>

using namespace strata;

struct Nowhere {
    using slot = slot::Storage;
};
struct Here {
    using slot = slot::Storage;
    using store = Local;
};
template <class Setup, class = typename Setup::backend::store>
inline constexpr int reads = 0;

#ifdef STRATA_BAD
using Mine = Setup<Nowhere>;
#else
using Mine = Setup<Here>;
#endif

// What a trainer reads of a composition: none of it may add a second error.
int main() { return reads<Mine>; }
