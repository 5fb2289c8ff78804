#pragma once
// strata/models/wide_convolution.hpp - convolutions in bf16 as products of fp32 blocks; models/wide_products.hpp says when and how.
//
// Shapes: B batch, C channels in, O channels out, h and w a picture's height and width.

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/convolution_form.hpp>

namespace strata::models {

/// x (B, C, h, w) under weight (O, C, kh, kw), plus bias (O) or an undefined one: (B, O, h', w'). bf16 on a CPU, of any strides;
/// one group. Differentiable once. Throws Errc::bad_value for shapes that do not fit each other.
at::Tensor wide_conv2d(const at::Tensor& x_BChw, const at::Tensor& weight_OCkk, const at::Tensor& bias_O,
                       const ConvolutionForm& form);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/wide_convolution.ipp>
#endif
