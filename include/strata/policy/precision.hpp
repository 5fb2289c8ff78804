#pragma once
// strata/policy/precision.hpp - Precision<Format>: number formats of computation and kept state.

#include <strata/core/policy.hpp>

namespace strata {

struct Fp32 {};  ///< fp32 everywhere
struct Bf16 {};  ///< bf16 parameters, activations and gradients; fp32 master weights and moments

template <class Format>
struct Precision;

template <>
struct Precision<Fp32> {
    using slot = slot::Numerics;
    static constexpr bool has_master = false;  ///< the parameters are the master copy
};

/// Mixed precision (Micikevicius et al. 2018, arXiv:1710.03740, section 3.1) with bf16, whose range
/// is that of fp32, so the loss needs no scaling.
template <>
struct Precision<Bf16> {
    using slot = slot::Numerics;
    static constexpr bool has_master = true;
};

}  // namespace strata
