#pragma once
// strata/train/seed.hpp - randomness as a function of where a run is, not of how it got there.

#include <cstdint>

#include <strata/core/inline.hpp>

namespace strata::train {

/// A seed for one micro-batch of one rank. Neighbouring arguments give unrelated seeds (SplitMix64's
/// finalizer, Steele et al. 2014, "Fast splittable pseudorandom number generators", figure 17).
constexpr std::uint64_t mixed_seed(std::uint64_t seed, std::int64_t micro_batch, int rank) noexcept {
    const auto finalize = [](std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    };
    const std::uint64_t place = finalize(seed + 0x9e3779b97f4a7c15U) + static_cast<std::uint64_t>(micro_batch);
    return finalize(finalize(place + 0x9e3779b97f4a7c15U) + static_cast<std::uint64_t>(rank));
}
static_assert(mixed_seed(1, 0, 0) != mixed_seed(1, 0, 1) && mixed_seed(1, 0, 1) != mixed_seed(1, 1, 0));

/// Seeds libtorch's default generators of every device. Dropout and noise of what follows depend on it alone.
void seed_generators(std::uint64_t seed);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/seed.ipp>
#endif
