#pragma once
// strata/optim/compiled_kernels.hpp - kernels of strata's own rules: a program that links strata::compiled does not
// compile them again.
//
// A kernel is a loop for each of three instruction sets, whatever the rest of a program is compiled with, so they are
// most of what one more rule costs a translation unit. Rules of a user's own are templates as ever, and so is
// everything in a header-only program. impl/compiled_RULE.cpp makes those of one rule, so that a program has those
// of the rules that it composes, and not of all of them.

#ifdef STRATA_COMPILED

#include <array>
#include <cstddef>
#include <span>

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/ema.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_kernel.hpp>

#define STRATA_KERNEL extern template
#define STRATA_KERNELS          \
    STRATA_ELEMENTWISE(Adagrad) \
    STRATA_ELEMENTWISE(Adam)    \
    STRATA_ELEMENTWISE(AdamW)   \
    STRATA_ELEMENTWISE(Lion)    \
    STRATA_ELEMENTWISE(Sgd)     \
    STRATA_LAYERWISE(Lamb)      \
    STRATA_AVERAGE
#include <strata/optim/impl/compiled_kernels.inc>

#endif
