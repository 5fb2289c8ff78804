#pragma once
// strata/zero/detail/preparation.hpp - what an Engine checks and converts before it takes a model over.

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/inline.hpp>
#include <strata/zero/parameters.hpp>

namespace strata::zero::detail {

/// The memory of a contiguous tensor. T is its element type, in torch's or in strata's name.
template <class T>
std::span<T> elements(const at::Tensor& tensor) {
    assert(tensor.is_contiguous() && sizeof(T) == tensor.element_size());
    return {static_cast<T*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.numel())};
}
inline std::span<std::byte> bytes_of(const at::Tensor& tensor) {
    assert(tensor.is_contiguous());
    return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

/// `value` as Kept keeps it, rounded to nearest; and back.
template <class Kept>
constexpr Kept kept_from(float value) noexcept {
    if constexpr (std::same_as<Kept, bf16>) {
        return to_bf16(value);
    } else if constexpr (std::same_as<Kept, fp16>) {
        return to_fp16(value);
    } else {
        return value;
    }
}
constexpr float as_float(float value) noexcept { return value; }
constexpr float as_float(bf16 value) noexcept { return to_float(value); }

/// Throws bad_value for options out of range.
void check_options(std::int64_t bucket_numel, int gradient_accumulation_steps, int buckets_in_flight);

/// One line a parameter, and one for the options: what must be the same on every rank.
[[nodiscard]] std::string describe(const std::vector<Parameter>& parameters, std::int64_t bucket_numel,
                                   int gradient_accumulation_steps);

/// Compares the descriptions of all ranks, in rank order. Throws rank_mismatch naming the first difference.
void check_same_model(const std::vector<std::string>& descriptions);

/// Moves the parameters that require a gradient out of `parameters` and returns them, in order.
/// Throws no_parameters if there is none, bad_parameter for one that cannot be trained.
[[nodiscard]] std::vector<Parameter> split_off_frozen(std::vector<Parameter>& parameters);

/// A contiguous copy, floating point values as `dtype`.
[[nodiscard]] at::Tensor converted_frozen(const at::Tensor& tensor, at::ScalarType dtype);

}  // namespace strata::zero::detail

#ifndef STRATA_COMPILED
#include <strata/zero/impl/preparation.ipp>
#endif
