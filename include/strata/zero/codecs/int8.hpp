#pragma once
// strata/zero/codecs/int8.hpp - Int8::codec: a step for each row, and a byte for each weight.
//
// Packed: rows steps in fp32, then rows x columns codes -127 .. 127; a weight is its code times its row's step.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <ATen/core/Tensor.h>

#include <strata/core/elements.hpp>
#include <strata/core/independent_loop.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/simd.hpp>
#include <strata/policy/frozen_weights.hpp>
#include <strata/zero/detail/packed_bytes.hpp>
#include <strata/zero/frozen_codec.hpp>

namespace strata {

/// zero::FrozenCodec. A weight comes back at most half a step from where it was (and a millionth of it, for the rounding of the division); in
/// bf16 and fp16 rounded from there. Rows whose largest magnitude is below 2^-119 come back as zeros.
///
/// A step has 17 significant bits, so that code times step is exact in fp32: what was dequantised to fp32 gives the same bytes again.
class Int8::codec {
public:
    static constexpr std::int64_t bytes(zero::MatrixShape shape) noexcept {
        return shape.rows * (static_cast<std::int64_t>(sizeof(float)) + shape.columns);
    }
    /// The step of a row with this largest magnitude; 0: all of it is zeros.
    [[nodiscard]] static constexpr float step_of(float largest) noexcept {
        if (largest < 0x1p-119F) return 0.0F;
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(largest / 127.0F) & ~0x7fU);
    }

    static bool quantise(const float* values, zero::MatrixShape shape, std::byte* packed) noexcept {
        auto* const codes =
            reinterpret_cast<std::int8_t*>(packed + shape.rows * static_cast<std::int64_t>(sizeof(float)));
        for (std::int64_t row = 0; row < shape.rows; ++row) {
            const float* const from = values + row * shape.columns;
            const std::uint32_t largest = zero::detail::largest_magnitude(from, shape.columns);
            if (largest >= zero::detail::bits_of_infinity) return false;
            const float step = step_of(std::bit_cast<float>(largest));
            std::memcpy(packed + row * static_cast<std::int64_t>(sizeof(float)), &step, sizeof step);
            core::run_at(core::simd_level(), Codes{from, shape.columns, step == 0.0F ? 1.0F : step, step == 0.0F,
                                                   codes + row * shape.columns});
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
        core::run_at(level, Values<Element>{packed, shape, values});
    }

    static void dequantise_on_device(const at::Tensor& packed, zero::MatrixShape shape, const at::Tensor& values);

private:
    struct Codes {
        const float* values;
        std::int64_t numel;
        float step;
        bool is_zero;
        std::int8_t* codes;

        [[gnu::always_inline]] void operator()() const noexcept {
            if (is_zero) {
                std::memset(codes, 0, static_cast<std::size_t>(numel));
                return;
            }
            const float magic = 12582912.0F;  // 1.5 * 2^23: adding it leaves the rounded integer in the low bits
            const float* const from = values;
            std::int8_t* const to = codes;
            const float by = step;
            const std::int64_t n = numel;
            STRATA_INDEPENDENT_LOOP
            for (std::int64_t i = 0; i < n; ++i) {
                const float rounded = from[i] / by + magic;
                to[i] = static_cast<std::int8_t>(__builtin_bit_cast(std::int32_t, rounded) - 0x4b400000);
            }
        }
    };

    template <class Element>
    struct Values {
        const std::byte* packed;
        zero::MatrixShape shape;
        Element* values;

        [[gnu::always_inline]] void operator()() const noexcept {
            const std::int64_t columns = shape.columns;
            const std::byte* const all = packed + shape.rows * static_cast<std::int64_t>(sizeof(float));
            for (std::int64_t row = 0; row < shape.rows; ++row) {
                float step = 0.0F;
                std::memcpy(&step, packed + row * static_cast<std::int64_t>(sizeof(float)), sizeof step);
                const auto* const codes = reinterpret_cast<const std::int8_t*>(all) + row * columns;
                Element* const to = values + row * columns;
                STRATA_INDEPENDENT_LOOP
                for (std::int64_t i = 0; i < columns; ++i)
                    to[i] = to_element<Element>(static_cast<float>(codes[i]) * step);
            }
        }
    };
};

static_assert(zero::FrozenCodec<Int8::codec> && zero::CodecOnDevices<Int8::codec>);
static_assert(Int8::codec::step_of(127.0F) == 1.0F && Int8::codec::step_of(0.0F) == 0.0F);

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/zero/impl/int8.ipp>
#endif
