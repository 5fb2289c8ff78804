#pragma once
// strata/core/mix.hpp - a 64-bit number stirred until nothing of its pattern is left.

#include <cstdint>

namespace strata::core {

/// The step between two states of SplitMix64: 2^64 divided by the golden ratio, made odd.
inline constexpr std::uint64_t golden_step = 0x9E3779B97F4A7C15U;

/// SplitMix64's finalizer (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators", figure 17): a
/// bijection whose output bits each depend on every input bit. mix(0) is 0, so states start at golden_step.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31);
}
static_assert(mix(golden_step) == 0xE220A8397B1DCDAFU);  // the generator's first number from seed 0

/// 32 bits for the generators that take no more, of a seed and the number of what is drawn with it.
constexpr std::uint32_t seed_of_32_bits(std::uint64_t seed, std::int64_t number) noexcept {
    std::uint64_t mixed = seed * golden_step + static_cast<std::uint64_t>(number + 1) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 31)) * 0x94D049BB133111EBU;
    return static_cast<std::uint32_t>(mixed >> 32);
}
static_assert(seed_of_32_bits(0, 0) == 0x9C8C8577U && seed_of_32_bits(42, 3) == 0x5CC4E9A0U);

}  // namespace strata::core
