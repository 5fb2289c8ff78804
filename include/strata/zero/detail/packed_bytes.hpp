#pragma once
// strata/zero/detail/packed_bytes.hpp - what codecs of frozen weights share: the largest magnitude of a run, and bytes as numbers.

#include <cstdint>
#include <cstring>

#include <ATen/core/Tensor.h>

#include <strata/core/simd.hpp>

namespace strata::zero::detail {

/// The largest magnitude of a run, as its bits: those of infinity or more where one value is not finite. Without numbers: 0.
struct LargestMagnitude {
    const float* values;
    std::int64_t numel;
    std::uint32_t* largest;

    [[gnu::always_inline]] void operator()() const noexcept {
        std::uint32_t found = 0;
        for (std::int64_t i = 0; i < numel; ++i) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, values + i, sizeof bits);
            bits &= 0x7fffffffU;
            found = bits > found ? bits : found;
        }
        *largest = found;
    }
};
inline constexpr std::uint32_t bits_of_infinity = 0x7f800000U;

[[nodiscard]] inline std::uint32_t largest_magnitude(const float* values, std::int64_t numel) noexcept {
    std::uint32_t largest = 0;
    core::run_at(core::simd_level(), LargestMagnitude{values, numel, &largest});
    return largest;
}

/// Bytes begin, begin + 1, ... of a packed matrix as `numel` numbers of another type, on its device: a copy, since bytes may lie anywhere.
[[nodiscard]] inline at::Tensor packed_as(const at::Tensor& packed, std::int64_t begin, std::int64_t numel,
                                          at::ScalarType type) {
    return packed.narrow(0, begin, numel * static_cast<std::int64_t>(c10::elementSize(type))).clone().view(type);
}

}  // namespace strata::zero::detail
