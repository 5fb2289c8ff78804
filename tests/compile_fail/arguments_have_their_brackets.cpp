// Ema without <> is a template and no type: no library can put a sentence to that, and the compiler prints one.

#include <strata/policy/setup.hpp>

using namespace strata;

#ifdef STRATA_BAD
using Mine = Setup<ZeroStage<1>, Ema>;
#else
using Mine = Setup<ZeroStage<1>, Ema<>>;
#endif
