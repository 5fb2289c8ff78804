// A name that TrainOptions does not have: the compiler's own sentence, which names it, once.

#include <strata/optim/adamw.hpp>
#include <strata/train/options.hpp>

using namespace strata;

#ifdef STRATA_BAD
const TrainOptions<AdamW> options{.max_step = 3};
#else
const TrainOptions<AdamW> options{.max_steps = 3};
#endif

int main() { return options.max_steps == 0; }
