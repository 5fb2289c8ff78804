#pragma once
// strata/models/impl/flow_sampler.ipp - seeded noise per prompt.

#include <strata/core/mix.hpp>
#include <strata/models/flow_sampler.hpp>

namespace strata::models {

STRATA_INLINE at::Tensor sample_noise(std::uint64_t seed, std::int64_t index, std::int64_t C, std::int64_t H,
                                      std::int64_t W) {
    // The generator seeds a Mersenne twister with 32 bits.
    at::Generator generator = at::detail::createCPUGenerator(core::seed_of_32_bits(seed, index));
    return at::randn({C, H, W}, generator, at::kFloat);
}

}  // namespace strata::models
