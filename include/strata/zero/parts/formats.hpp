#pragma once
// strata/zero/parts/formats.hpp - FormatsOf: the number formats of a precision and of its exceptions, as numbers and facts.

#include <type_traits>

#include <ATen/core/Tensor.h>

#include <strata/policy/precision.hpp>
#include <strata/zero/detail/preparation.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>

namespace strata::zero {

/// Without exceptions there is one format, whatever is asked for.
///
///   Numerics  a Precision
template <class Numerics>
struct FormatsOf {
    using Excepted = strata::detail::excepted_of_t<Numerics>;
    static constexpr bool has_exceptions = !std::is_void_v<Excepted>;
    using Other = std::conditional_t<has_exceptions, Excepted, Numerics>;

    /// What parameters are kept in.
    [[nodiscard]] static constexpr at::ScalarType dtype(bool excepted) noexcept {
        return excepted ? detail::dtype_v<typename Other::element> : detail::dtype_v<typename Numerics::element>;
    }
    /// What their gradients are collected in.
    [[nodiscard]] static constexpr at::ScalarType gradient_dtype(bool excepted) noexcept {
        return excepted ? detail::dtype_v<gradient_element_t<typename Other::element>>
                        : detail::dtype_v<gradient_element_t<typename Numerics::element>>;
    }
    [[nodiscard]] static constexpr bool has_master(bool excepted) noexcept {
        return excepted ? Other::has_master : Numerics::has_master;
    }
};

}  // namespace strata::zero
