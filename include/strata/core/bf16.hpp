#pragma once
// strata/core/bf16.hpp - bf16: sixteen bits with the range of fp32, and its two conversions.

#include <bit>
#include <cstdint>

namespace strata {

/// A brain float: the upper half of an fp32 number, so 8 bits of exponent and 7 of fraction.
///
/// Only a container: arithmetic is done in fp32. The layout is that of at::BFloat16 and of safetensors' BF16.
struct bf16 {
    std::uint16_t bits;
    friend constexpr bool operator==(bf16, bf16) noexcept = default;  ///< of bits, so NaN == NaN and 0 != -0
};
static_assert(sizeof(bf16) == 2);

/// The same number in fp32; exact.
[[gnu::always_inline]] constexpr float to_float(bf16 value) noexcept {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}

/// The bits of an fp32 number become those of its upper half, rounded to nearest, ties to even. NaN is not looked
/// after.
///
///   Bits  std::uint32_t, or a vector of them
template <class Bits>
[[gnu::always_inline]] constexpr void round_to_upper_half(Bits& bits) noexcept {
    bits = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
}

/// The nearest bf16, ties to even; beyond the largest one infinity; NaN becomes the quiet NaN 0x7fc0.
[[gnu::always_inline]] constexpr bf16 to_bf16(float value) noexcept {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
    std::uint32_t rounded = bits;
    round_to_upper_half(rounded);
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return bf16{static_cast<std::uint16_t>(is_nan ? 0x7fc0U : rounded)};
}

static_assert(to_float(to_bf16(1.0F)) == 1.0F);
static_assert(to_bf16(1.00390625F) == bf16{0x3f80});  // half way between two neighbours: the even one
static_assert(to_bf16(1.01171875F) == bf16{0x3f82});
static_assert(to_bf16(3.4e38F) == bf16{0x7f80});

}  // namespace strata
