#pragma once
// strata/models/impl/convolution.ipp - the choice among convolutions.

#include <strata/models/convolution.hpp>
#include <strata/models/wide_convolution.hpp>
#include <strata/models/wide_products.hpp>
#include <strata/models/winograd_convolution.hpp>

namespace strata::models {

STRATA_INLINE at::Tensor conv2d(const at::Tensor& x_BChw, const at::Tensor& weight, const at::Tensor& bias,
                                const ConvolutionForm& form) {
    if (takes_winograd(x_BChw, weight, form)) return winograd_conv2d(x_BChw, weight, bias, form.padding[0]);
    if (takes_wide_products(x_BChw, weight)) return wide_conv2d(x_BChw, weight, bias, form);
    return at::conv2d(x_BChw, weight, bias, form.stride, form.padding, form.dilation);
}

}  // namespace strata::models
