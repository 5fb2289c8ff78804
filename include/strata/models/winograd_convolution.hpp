#pragma once
// strata/models/winograd_convolution.hpp - 3 x 3 convolutions of many channels in fp32 on a CPU, with 16 multiplications where 36 are due.
//
// models/winograd_tiles.hpp has the formulas. BLAS multiplies the 16 matrices; what it gets is made in blocks, of which scratch never has
// more than 40 MiB, but for lines of tiles that are longer and more than 8,192 channels. Sums are of fp32, further from the exact ones than those of a plain convolution by a few
// units of the last place (tests/unit/models/winograd_convolution_test.cpp has the bound). Which convolutions go this way depends on
// shapes alone, so ranks and stages have the same bits; on BLAS they depend as any product does. A number that is infinite makes NaN of
// all results of its tiles.
//
// Shapes: B batch, C channels in, O channels out, h and w a picture's height and width.

#include <cstdint>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/convolution_form.hpp>

namespace strata::models {

/// Whether winograd_conv2d() is called for such a convolution: fp32 on a CPU, a window of 3 x 3 with step 1, at least 128 channels on both
/// sides, and 64 tiles of 2 x 2 results, where the products are large enough.
[[nodiscard]] bool takes_winograd(const at::Tensor& x_BChw, const at::Tensor& weight_OCkk, const ConvolutionForm& form);

/// x (B, C, h, w) under weight (O, C, 3, 3) with `padding` zeros on each side (0 to 2), plus bias (O) or an undefined one:
/// (B, O, h + 2 padding - 2, w + 2 padding - 2). Differentiable once; what needs no gradient gets no work. Throws Errc::bad_value for
/// shapes that do not fit each other.
at::Tensor winograd_conv2d(const at::Tensor& x_BChw, const at::Tensor& weight_OC33, const at::Tensor& bias_O,
                           std::int64_t padding);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/winograd_convolution.ipp>
#endif
