#pragma once
// strata/train/seed.hpp - randomness as a function of where a run is, not of how it got there.

#include <cstdint>

#include <strata/core/inline.hpp>
#include <strata/core/mix.hpp>

namespace strata::train {

/// A seed for one micro-batch of one rank. Neighbouring ones have unrelated seeds. As samples are dealt (data.md, "The sample plan"), so is
/// randomness: 2 ranks with 3 micro-batches a step and 3 ranks with 2 have the same six, for the same samples.
///
///   micro_batch  since the first of the run, of this rank
constexpr std::uint64_t mixed_seed(std::uint64_t seed, std::int64_t micro_batch, int rank, int world) noexcept {
    const std::uint64_t place =
        core::mix(seed + core::golden_step) + static_cast<std::uint64_t>(micro_batch * world + rank);
    return core::mix(core::mix(place + core::golden_step));
}
static_assert(mixed_seed(1, 0, 0, 2) != mixed_seed(1, 0, 1, 2) && mixed_seed(1, 0, 1, 2) != mixed_seed(1, 1, 0, 2));
static_assert(mixed_seed(1, 2, 1, 2) == mixed_seed(1, 1, 2, 3));

/// Seeds libtorch's default generators of every device. Dropout and noise of what follows depend on it alone.
void seed_generators(std::uint64_t seed);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/seed.ipp>
#endif
