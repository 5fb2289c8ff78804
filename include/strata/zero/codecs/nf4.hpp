#pragma once
// strata/zero/codecs/nf4.hpp - Nf4::codec: half a byte for each weight, and a magnitude for each 64.
//
// Packed: the largest magnitude of each block of 64 weights in row-major order, in fp32; then half a byte a weight. Byte j of a block of n
// weights has the code of weight j in its lower half, and that of weight j + ceil(n / 2) in its upper one, so that either half of a block is
// a run of bytes with a mask or a shift.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <ATen/core/Tensor.h>

#include <strata/core/elements.hpp>
#include <strata/core/independent_loop.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/lanes.hpp>
#include <strata/core/simd.hpp>
#include <strata/policy/frozen_weights.hpp>
#include <strata/zero/detail/packed_bytes.hpp>
#include <strata/zero/frozen_codec.hpp>

namespace strata {

/// zero::FrozenCodec. A weight comes back at most 0.152 of its block's largest magnitude from where it was, half of the widest gap between
/// two levels; in bf16 and fp16 rounded from there. Zeros come back as zeros, and a block's largest magnitudes as they were in fp32, so that
/// what was dequantised to fp32 gives the same bytes again.
class Nf4::codec {
public:
    static constexpr std::int64_t block = 64;
    static constexpr std::int64_t half = block / 2;
    /// What codes 0 .. 15 stand for: quantiles of the normal distribution that give 0 and both ends a level (arXiv:2305.14314,
    /// appendix E).
    static constexpr float levels[16] = {-1.0F,
                                         -0.6961928009986877F,
                                         -0.5250730514526367F,
                                         -0.39491748809814453F,
                                         -0.28444138169288635F,
                                         -0.18477343022823334F,
                                         -0.09105003625154495F,
                                         0.0F,
                                         0.07958029955625534F,
                                         0.16093020141124725F,
                                         0.24611230194568634F,
                                         0.33791524171829224F,
                                         0.44070982933044434F,
                                         0.5626170039176941F,
                                         0.7229568362236023F,
                                         1.0F};
    /// Of the widest gap, which is the lowest one.
    static constexpr float half_gap = (levels[1] - levels[0]) / 2.0F;

    static constexpr std::int64_t blocks_of(std::int64_t numel) noexcept { return (numel + block - 1) / block; }
    static constexpr std::int64_t bytes(zero::MatrixShape shape) noexcept {
        const std::int64_t numel = shape.numel();
        return blocks_of(numel) * static_cast<std::int64_t>(sizeof(float)) + (numel + 1) / 2;
    }

    static bool quantise(const float* values, zero::MatrixShape shape, std::byte* packed) noexcept {
        const std::int64_t numel = shape.numel();
        std::byte* const codes = packed + blocks_of(numel) * static_cast<std::int64_t>(sizeof(float));
        for (std::int64_t at = 0; at < numel; at += block) {
            const std::int64_t n = std::min(block, numel - at);
            const std::uint32_t largest = zero::detail::largest_magnitude(values + at, n);
            if (largest >= zero::detail::bits_of_infinity) return false;
            std::memcpy(packed + at / block * static_cast<std::int64_t>(sizeof(float)), &largest, sizeof largest);
            float padded[block]{};
            std::memcpy(padded, values + at, static_cast<std::size_t>(n) * sizeof(float));
            std::uint8_t found[block];
            core::run_at(core::simd_level(), Codes{padded, largest == 0 ? 1.0F : std::bit_cast<float>(largest), found});
            const std::int64_t first = (n + 1) / 2;
            if (first * 2 > n) found[n] = zero_code;
            for (std::int64_t j = 0; j < first; ++j)
                codes[at / 2 + j] = static_cast<std::byte>(found[j] | (found[first + j] << 4));
        }
        return true;
    }

    template <class Element>
    static void dequantise(const std::byte* packed, zero::MatrixShape shape, Element* values) noexcept {
        dequantise_at(core::simd_level(), packed, shape, values);
    }
    /// With the same bits at every level; for tests and comparisons.
    template <class Element>
    static void dequantise_at(core::SimdLevel level, const std::byte* packed, zero::MatrixShape shape,
                              Element* values) noexcept {
        core::run_in_lanes(level, Values<Element>{packed, shape.numel(), values});
    }

    static void dequantise_on_device(const at::Tensor& packed, zero::MatrixShape shape, const at::Tensor& values);

private:
    static constexpr std::uint8_t zero_code = 7;
    static_assert(levels[zero_code] == 0.0F);

    /// The nearest level of each of a block's weights: how many middles of two levels it is above.
    struct Codes {
        const float* values;  // (block)
        float largest;
        std::uint8_t* codes;

        [[gnu::always_inline]] void operator()() const noexcept {
            const float* const from = values;
            std::uint8_t* const to = codes;
            const float by = largest;
            STRATA_INDEPENDENT_LOOP
            for (std::int64_t i = 0; i < block; ++i) {
                const float x = from[i] / by;
                std::int32_t code = 0;
#pragma GCC unroll 15
                for (int k = 0; k < 15; ++k) code += x > (levels[k] + levels[k + 1]) / 2.0F ? 1 : 0;
                to[i] = static_cast<std::uint8_t>(code);
            }
        }
    };

    template <class Element>
    struct Values {
        const std::byte* packed;
        std::int64_t numel;
        Element* values;

        template <int lanes>
        [[gnu::always_inline]] void operator()(std::integral_constant<int, lanes>) const noexcept {
            const auto* const codes = reinterpret_cast<const std::uint8_t*>(packed) +
                                      blocks_of(numel) * static_cast<std::int64_t>(sizeof(float));
            for (std::int64_t at = 0; at < numel; at += block) {
                float largest = 0.0F;
                std::memcpy(&largest, packed + at / block * static_cast<std::int64_t>(sizeof(float)), sizeof largest);
                Element table[16];
                STRATA_INDEPENDENT_LOOP
                for (int k = 0; k < 16; ++k) table[k] = to_element<Element>(levels[k] * largest);
                const std::int64_t n = std::min(block, numel - at);
                const std::int64_t first = (n + 1) / 2;
                const std::uint8_t* const from = codes + at / 2;
                Element* const to = values + at;
#ifndef __clang__  // has no __builtin_shuffle
                if constexpr (lanes >= 8) {
                    if (n == block) {
                        look_up<lanes>(table, from, to);
                        continue;
                    }
                }
#endif
                for (std::int64_t j = 0; j < first; ++j) {
                    to[j] = table[from[j] & 15];
                    if (first + j < n) to[first + j] = table[from[j] >> 4];
                }
            }
        }

#ifndef __clang__
        /// A whole block, with the table in one register of 16 lanes or in two of 8.
        template <int lanes>
        [[gnu::always_inline]] static void look_up(const Element* table, const std::uint8_t* from,
                                                   Element* to) noexcept {
            using Bits = typename core::Lanes<lanes>::Bits;
            using Codes8 = typename core::VectorOf<std::uint8_t, lanes>::type;
            using Number = std::conditional_t<sizeof(Element) == 4, std::uint32_t, std::uint16_t>;
            using Out = typename core::VectorOf<Number, lanes>::type;
            std::uint32_t wide[16];
            for (int k = 0; k < 16; ++k) {
                Number bits;
                std::memcpy(&bits, table + k, sizeof bits);
                wide[k] = bits;
            }
            Bits low;
            Bits high;
            std::memcpy(&low, wide, sizeof low);
            std::memcpy(&high, wide + (lanes == 8 ? 8 : 0), sizeof high);
            const auto pick = [&](const Bits& which, Element* place) __attribute__((always_inline)) {
                Bits found;
                if constexpr (lanes == 16)
                    found = __builtin_shuffle(low, which);
                else
                    found = __builtin_shuffle(low, high, which);
                const auto numbers = __builtin_convertvector(found, Out);
                std::memcpy(place, &numbers, sizeof numbers);
            };
            for (std::int64_t j = 0; j < half; j += lanes) {
                Codes8 bytes;
                std::memcpy(&bytes, from + j, sizeof bytes);
                const Bits both = __builtin_convertvector(bytes, Bits);
                pick(both & 15U, to + j);
                pick(both >> 4, to + half + j);
            }
        }
#endif
    };
};

static_assert(zero::FrozenCodec<Nf4::codec> && zero::CodecOnDevices<Nf4::codec>);
static_assert(Nf4::codec::bytes({2, 64}) == 2 * (4 + 32) && Nf4::codec::bytes({1, 65}) == 8 + 33);

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/zero/impl/nf4.ipp>
#endif
