#pragma once
// strata/models/wide_convolution.hpp - convolutions in bf16 as products of fp32 blocks; models/wide_products.hpp says when and how.
//
// Shapes: B batch, C channels in, O channels out, h and w a picture's height and width.

#include <array>
#include <cstdint>

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// What a convolution is besides its tensors: numbers for height and width.
struct ConvolutionForm {
    std::array<std::int64_t, 2> stride{1, 1};
    std::array<std::int64_t, 2> padding{0, 0};  ///< zeros on both sides
    std::array<std::int64_t, 2> dilation{1, 1};
};

/// x (B, C, h, w) under weight (O, C, kh, kw), plus bias (O) or an undefined one: (B, O, h', w'). bf16 on a CPU, of any strides;
/// one group. Differentiable once. Throws Errc::bad_value for shapes that do not fit each other.
at::Tensor wide_conv2d(const at::Tensor& x_BChw, const at::Tensor& weight_OCkk, const at::Tensor& bias_O,
                       const ConvolutionForm& form);

/// The convolution of a layer: wide_conv2d() where takes_wide_products(), at::conv2d elsewhere. `groups` other than 1 are
/// libtorch's everywhere.
at::Tensor conv2d(const at::Tensor& x_BChw, const at::Tensor& weight, const at::Tensor& bias,
                  const ConvolutionForm& form, std::int64_t groups = 1);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/wide_convolution.ipp>
#endif
