#pragma once
// strata/train/impl/seed.ipp - the one call that needs libtorch's context.

#include <ATen/Context.h>

#include <strata/train/seed.hpp>

namespace strata::train {

STRATA_INLINE void seed_generators(std::uint64_t seed) { at::manual_seed(seed); }

}  // namespace strata::train
