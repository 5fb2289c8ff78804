#pragma once
// strata/policy/precision.hpp - Precision<Format>: number formats of computation and kept state.

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/policy.hpp>

namespace strata {

struct Fp32 {};      ///< fp32 everywhere
struct Bf16 {};      ///< bf16 parameters, activations and gradients; fp32 master weights and states
struct Fp16 {};      ///< fp16 parameters, activations and gradients; fp32 master weights and states; the loss is scaled
struct PureBf16 {};  ///< bf16 everywhere, optimizer states too; stochastic rounding instead of a master

/// Number formats of a run. Every Precision says:
///
///   element       what parameters and their gradients are kept in
///   kept          what optimizer states are kept in; the master weights too, where there are some
///   has_master    parameters are rounded copies of weights kept in fp32; otherwise they are the weights themselves
///   scales_loss   gradients are made of a scaled loss (optim/loss_scale.hpp), and a step that overflows is skipped
template <class Format>
struct Precision;

template <>
struct Precision<Fp32> {
    using slot = slot::Numerics;
    using element = float;
    using kept = float;
    static constexpr bool has_master = false;
    static constexpr bool scales_loss = false;
};

/// Mixed precision (Micikevicius et al. 2018, arXiv:1710.03740, section 3.1) with bf16, whose range
/// is that of fp32, so the loss needs no scaling.
template <>
struct Precision<Bf16> {
    using slot = slot::Numerics;
    using element = bf16;
    using kept = float;
    static constexpr bool has_master = true;
    static constexpr bool scales_loss = false;
};

/// Mixed precision as its paper has it, with loss scaling (section 3.2).
template <>
struct Precision<Fp16> {
    using slot = slot::Numerics;
    using element = fp16;
    using kept = float;
    static constexpr bool has_master = true;
    static constexpr bool scales_loss = true;
};

/// Half the memory of mixed precision: 2 bytes for each weight, gradient and state. Updates are rounded by chance
/// (optim/stochastic_rounding.hpp), seeded by run and step, so that they neither vanish nor differ from run to run.
template <>
struct Precision<PureBf16> {
    using slot = slot::Numerics;
    using element = bf16;
    using kept = bf16;
    static constexpr bool has_master = false;
    static constexpr bool scales_loss = false;
};

}  // namespace strata
