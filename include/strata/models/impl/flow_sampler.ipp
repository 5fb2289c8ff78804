#pragma once
// strata/models/impl/flow_sampler.ipp - seeded noise per prompt.

#include <strata/models/flow_sampler.hpp>

namespace strata::models {

STRATA_INLINE at::Tensor sample_noise(std::uint64_t seed, std::int64_t index, std::int64_t C, std::int64_t H,
                                      std::int64_t W) {
    // The generator seeds a Mersenne twister with 32 bits: spread the pair over them.
    std::uint64_t mixed = seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(index + 1) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 31)) * 0x94d049bb133111ebu;
    at::Generator generator = at::detail::createCPUGenerator(mixed >> 32);
    return at::randn({C, H, W}, generator, at::kFloat);
}

}  // namespace strata::models
