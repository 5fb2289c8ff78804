#pragma once
// strata/models/few_rows.hpp - products of a few rows with a large matrix, which a library's product of matrices runs slowly.
//
// What a modulation projects is a row a picture, and its weight is read once: such a product is as long as memory takes
// to give the weight. OpenBLAS and oneDNN pack their operands as if they were used again, and take 1.5 to 2.8 times that
// (bench/models_step/RESULT.md).
//
// Plain pointers, no libtorch, one thread. Number formats: `float`, or bf16; sums are fp32 inside. Every body exists for
// AVX-512, AVX2 and the baseline, and the first call picks one; results differ between them only in rounding.
//
// Shapes: R rows, few; I width of what comes in, a multiple of 16; O of what comes out. All dense.

#include <cstdint>

#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>

namespace strata::models::kernels {

/// y (R, O) = x (R, I) times weight (O, I) transposed, plus bias (O) or nullptr for none. Rounded once.
void few_rows(float* y, const float* x, const float* weight, const float* bias, std::int64_t R, std::int64_t I,
              std::int64_t O);
void few_rows(bf16* y, const bf16* x, const bf16* weight, const bf16* bias, std::int64_t R, std::int64_t I,
              std::int64_t O);

/// Gradient of few_rows for x: grad_x (R, I), overwritten, = grad_y (R, O) times weight (O, I).
void few_rows_grad_x(float* grad_x, const float* grad_y, const float* weight, std::int64_t R, std::int64_t I,
                     std::int64_t O);
void few_rows_grad_x(float* grad_x, const bf16* grad_y, const bf16* weight, std::int64_t R, std::int64_t I,
                     std::int64_t O);

/// Gradient of few_rows for weight: grad_weight (O, I), overwritten, = grad_y (R, O) transposed times x (R, I).
void few_rows_grad_weight(float* grad_weight, const float* grad_y, const float* x, std::int64_t R, std::int64_t I,
                          std::int64_t O);
void few_rows_grad_weight(bf16* grad_weight, const bf16* grad_y, const bf16* x, std::int64_t R, std::int64_t I,
                          std::int64_t O);

}  // namespace strata::models::kernels

#ifndef STRATA_COMPILED
#include <strata/models/impl/few_rows.ipp>
#endif
