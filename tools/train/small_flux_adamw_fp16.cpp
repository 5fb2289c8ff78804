#include "train_small_flux.hpp"

namespace strata::tools {

void train_small_flux(SmallFluxRun& run, const config::Intent& asked, AdamWFp16 list) {
    train_one_of(run, asked, list);
}

}  // namespace strata::tools
