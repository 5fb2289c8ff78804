#include <strata/adapters/lora.hpp>

#include "train_one_of.hpp"

namespace strata::tools {

void train_pictures(PictureRun& run, const config::Intent& asked, LoraTrainers list) { train_one_of(run, asked, list); }

}  // namespace strata::tools
