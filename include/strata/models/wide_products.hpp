#pragma once
// strata/models/wide_products.hpp - products of bf16 matrices on CPUs, where strata's are faster than libtorch's.
//
// libtorch gives bf16 products to oneDNN where the CPU has AVX-512 (BW, DQ and VL), and elsewhere to a plain loop, which is 15 to 55
// times slower than fp32 by BLAS (bench/bf16_products/RESULT.md). There, blocks of the operands are widened to fp32 and BLAS
// multiplies them (docs/decisions/043). Where the CPU multiplies pairs of bf16 (AVX512_BF16), linear layers take the products of
// models/pair_products.hpp, but for the results of fewer than 512 rows, which stay libtorch's (docs/decisions/047). In both, sums are fp32 and each number of the result is rounded once.
//
// Scratch is 3 MiB a thread that multiplies by way of fp32, up to 7 MiB of one that multiplies pairs, kept for its next product,
// whatever the operands' size: no whole copy of a weight. For a convolution's gradient of its input there are up to 4 MiB more, or one
// channel of a picture in fp32. What is rounded depends on the operands alone, so ranks and stages have the same bits; by way of
// fp32 it depends on BLAS's threads as fp32 does.
//
// All are differentiable (once); what needs no gradient gets no work. Shapes: R rows, I in, O out, B batch.

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// Whether libtorch's own products of bf16 matrices are slow on this CPU: x86-64 without what oneDNN's need, or oneDNN not
/// there or switched off. Never by the clock, so that every run of a machine has the same bits. Local.
[[nodiscard]] bool bf16_products_are_slow();

/// Whether x and weight are bf16 on a CPU whose bf16_products_are_slow(), which is where the functions below are called
/// for.
[[nodiscard]] bool takes_wide_products(const at::Tensor& x, const at::Tensor& weight);

/// Whether wide_linear() is called for x (R, I) and weight (O, I): where takes_wide_products(), or both are bf16 on a CPU that
/// multiplies pairs, with 16 rows and more of 16 numbers and more.
[[nodiscard]] bool takes_own_products(const at::Tensor& x_RI, const at::Tensor& weight_OI);

/// x (R, I) times weight (O, I) transposed, plus bias (O) or an undefined one: (R, O). bf16 on a CPU, of any strides.
/// Throws Errc::bad_value for shapes that do not fit each other, as the next one does.
at::Tensor wide_linear(const at::Tensor& x_RI, const at::Tensor& weight_OI, const at::Tensor& bias_O);

/// wide_linear() of a (R, A) and b (R, I - A) side by side, which are not put together.
at::Tensor wide_linear_of_two(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight_OI,
                              const at::Tensor& bias_O);

/// a (B, L, K) times b (B, K, S): (B, L, S). bf16 on a CPU, of any strides. Not differentiable: for bodies of functions
/// that have their own backward.
at::Tensor wide_bmm(const at::Tensor& a_BLK, const at::Tensor& b_BKS);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/wide_products.ipp>
#endif
