#pragma once
// strata/core/elements.hpp - numbers between fp32 and what they are kept in: one by one, and whole runs.

#include <algorithm>
#include <cassert>
#include <concepts>
#include <span>

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/host_device.hpp>

namespace strata {

/// So that code over element types need not ask which it has; bf16 and fp16 have theirs in their own headers.
[[gnu::always_inline]] STRATA_HOST_DEVICE constexpr float to_float(float value) noexcept { return value; }

/// `value` as an Element keeps it: bf16 and fp16 rounded to nearest, ties to even; fp32 and fp64 exact.
template <class Element>
[[gnu::always_inline]] STRATA_HOST_DEVICE constexpr Element to_element(float value) noexcept {
    if constexpr (std::same_as<Element, bf16>) {
        return to_bf16(value);
    } else if constexpr (std::same_as<Element, fp16>) {
        return to_fp16(value);
    } else {
        static_assert(std::floating_point<Element>);
        return value;
    }
}
static_assert(to_float(to_element<bf16>(-2.5F)) == -2.5F && to_element<fp16>(65520.0F) == fp16{0x7c00});

namespace core {

/// to[i] = from[i], through fp32. Local.
///
///   from, to  as many elements each; the same memory where they have one type, else no common byte
template <class From, class To>
void convert_elements(std::span<const From> from, std::span<To> to) noexcept {
    assert(from.size() == to.size());
    std::transform(from.begin(), from.end(), to.begin(), [](From value) { return to_element<To>(to_float(value)); });
}

}  // namespace core

}  // namespace strata
