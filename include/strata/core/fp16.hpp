#pragma once
// strata/core/fp16.hpp - fp16: IEEE 754 half precision, and its two conversions.

#include <bit>
#include <cstdint>

namespace strata {

/// An IEEE 754 binary16 number: 5 bits of exponent and 10 of fraction; largest 65504, smallest above zero 2^-24.
///
/// Only a container: arithmetic is done in fp32. The layout is that of at::Half and of safetensors' F16.
struct fp16 {
    std::uint16_t bits;
    friend constexpr bool operator==(fp16, fp16) noexcept = default;  ///< of bits, so NaN == NaN and 0 != -0
};
static_assert(sizeof(fp16) == 2);

// Both conversions are made of integer operations, one fp32 addition and selections, without a branch: so a loop over
// them becomes vector instructions at every level, and gives the same bits at each, denormals flushed or not.

/// The same number in fp32; exact. A NaN keeps its sign and payload.
[[gnu::always_inline]] constexpr float to_float(fp16 value) noexcept {
    const std::uint32_t magnitude = value.bits & 0x7fffU;
    const std::uint32_t sign = (value.bits & 0x8000U) << 16;
    const std::uint32_t shifted = magnitude << 13;
    // A subnormal is fraction x 2^-24: written below the leading bit of 2^-14, and 2^-14 taken away again.
    const float subnormal = __builtin_bit_cast(float, shifted + 0x38800000U) - 0x1p-14F;
    std::uint32_t bits = shifted + (112U << 23);  // the exponents' biases are 127 and 15
    bits = magnitude < 0x0400U ? __builtin_bit_cast(std::uint32_t, subnormal) : bits;
    bits = magnitude >= 0x7c00U ? shifted | 0x7f800000U : bits;
    return __builtin_bit_cast(float, bits | sign);
}

/// The nearest fp16, ties to even; from 65520 on infinity; NaN becomes the quiet NaN 0x7e00.
[[gnu::always_inline]] constexpr fp16 to_fp16(float value) noexcept {
    const std::uint32_t all = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t sign = (all >> 16) & 0x8000U;
    const std::uint32_t bits = all & 0x7fffffffU;
    // Below 2^-14 a step is 2^-24, which is also fp32's step at 0.5: the addition rounds as fp16 would.
    const std::uint32_t subnormal =
        __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, bits) + 0.5F) - 0x3f000000U;
    std::uint32_t result = (bits - (112U << 23) + 0x0fffU + ((bits >> 13) & 1U)) >> 13;
    result = bits < 0x38800000U ? subnormal : result;
    result = bits >= 0x47800000U ? 0x7c00U : result;  // 65536; what lies between 65520 and it carries into 0x7c00
    const bool is_nan = bits > 0x7f800000U;
    return fp16{static_cast<std::uint16_t>(is_nan ? 0x7e00U : result | sign)};
}

static_assert(to_float(to_fp16(1.0F)) == 1.0F);
static_assert(to_fp16(0x1p-24F) == fp16{0x0001} && to_float(fp16{0x0001}) == 0x1p-24F);
static_assert(to_fp16(2049.0F) == fp16{0x6800});  // half way between two neighbours: the even one
static_assert(to_fp16(65519.0F) == fp16{0x7bff} && to_fp16(-65520.0F) == fp16{0xfc00});

}  // namespace strata
