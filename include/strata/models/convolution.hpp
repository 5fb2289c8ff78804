#pragma once
// strata/models/convolution.hpp - the convolution of a layer, by the way that is fastest for its type, shape and CPU.

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/convolution_form.hpp>

namespace strata::models {

/// x (B, C, h, w) under weight (O, C, kh, kw), plus bias (O) or an undefined one: (B, O, h', w'). winograd_conv2d() where takes_winograd(),
/// wide_conv2d() where takes_wide_products(), both differentiable once; at::conv2d elsewhere.
at::Tensor conv2d(const at::Tensor& x_BChw, const at::Tensor& weight, const at::Tensor& bias,
                  const ConvolutionForm& form);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/convolution.ipp>
#endif
