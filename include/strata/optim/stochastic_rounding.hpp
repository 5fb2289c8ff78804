#pragma once
// strata/optim/stochastic_rounding.hpp - fp32 to bf16 by chance: right on average, and the same at every run.

#include <concepts>
#include <cstdint>

#include <strata/core/bf16.hpp>
#include <strata/core/host_device.hpp>
#include <strata/core/mix.hpp>
#include <strata/optim/elements.hpp>

namespace strata::optim {

/// Which random bits a run of elements is rounded with: a pure function of (seed, step, number of the element).
///
/// bf16 has 8 bits of precision, so an update below 1/512 of a weight vanishes when it is rounded to nearest; rounded
/// up with the probability of its remainder, it arrives on average (Gupta et al. 2015, arXiv:1502.02551). Nothing
/// depends on how elements are spread over ranks, chunks, threads or vector lanes.
struct StochasticRounding {
    std::uint64_t seed = 0;
    std::int64_t step = 0;           ///< of the optimizer; another step, other bits
    std::int64_t first_element = 0;  ///< the run's first element in the model's virtual array (zero/layout.hpp)
};

/// One of the two neighbours of `value` in bf16, the upper one (in magnitude) when the remainder plus a random number
/// of 16 bits carries. What bf16 has stays as it is, 0 and infinity too; NaN becomes 0x7fc0.
///
///   random  0 .. 65535, evenly distributed
[[gnu::always_inline]] STRATA_HOST_DEVICE constexpr bf16 to_bf16_stochastic(float value,
                                                                            std::uint32_t random) noexcept {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return bf16{static_cast<std::uint16_t>(is_nan ? 0x7fc0U : (bits + random) >> 16)};
}
static_assert(to_bf16_stochastic(1.0F, 0xffff) == bf16{0x3f80});
static_assert(to_bf16_stochastic(1.001953125F, 0xbfff) == bf16{0x3f80});  // a quarter of the way to the next number
static_assert(to_bf16_stochastic(1.001953125F, 0xc000) == bf16{0x3f81});

namespace detail {

/// The generator of one block of chunk_numel elements: a counter, and mixing steps of 32 bits that every vector unit
/// has.
struct RandomBlock {
    std::uint32_t start = 0;
    std::uint32_t twist = 0;

    RandomBlock() = default;
    STRATA_HOST_DEVICE constexpr RandomBlock(const StochasticRounding& rounding, std::int64_t block) noexcept {
        std::uint64_t key = core::mix(core::golden_step + rounding.seed);
        key = core::mix(core::golden_step + (key ^ static_cast<std::uint64_t>(rounding.step)));
        key = core::mix(core::golden_step + (key ^ static_cast<std::uint64_t>(block)));
        start = static_cast<std::uint32_t>(key);
        twist = static_cast<std::uint32_t>(key >> 32);
    }

    /// 16 random bits for value number `slot` (0 the weight, 1 .. the states) of element `index` of the block.
    [[gnu::always_inline]] STRATA_HOST_DEVICE std::uint32_t bits(std::uint32_t slot,
                                                                 std::uint32_t index) const noexcept {
        // Two slots share the halves of a word. The constants are those of MurmurHash3's last step.
        std::uint32_t x = start + (index + slot / 2 * static_cast<std::uint32_t>(chunk_numel)) * 0x9e3779b9U;
        x = (x ^ (x >> 16)) * 0x85ebca6bU;
        x ^= twist;
        x = (x ^ (x >> 13)) * 0xc2b2ae35U;
        x ^= x >> 16;
        return slot % 2 == 0 ? x >> 16 : x & 0xffffU;
    }
};

/// `value` as it is kept: fp32 as it is, bf16 rounded by chance.
template <class T>
[[gnu::always_inline]] STRATA_HOST_DEVICE inline T kept(float value, const RandomBlock& random, std::uint32_t slot,
                                                        std::uint32_t index) noexcept {
    if constexpr (std::same_as<T, float>) {
        return value;
    } else {
        return to_bf16_stochastic(value, random.bits(slot, index));
    }
}

}  // namespace detail

/// What weights and states are kept in: fp32, or bf16 rounded by chance at every step.
template <class T>
concept KeptElement = std::same_as<T, float> || std::same_as<T, bf16>;

}  // namespace strata::optim
