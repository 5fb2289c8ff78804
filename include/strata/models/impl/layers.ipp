#pragma once
// strata/models/impl/layers.ipp - bodies of layers that adapters can be attached to.

#include <strata/models/convolution.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/layers.hpp>

namespace strata::models {

STRATA_INLINE Linear::Linear(std::int64_t in, std::int64_t out, bool has_bias)
    : LinearImpl(torch::nn::LinearOptions(in, out).bias(has_bias)) {}

STRATA_INLINE at::Tensor Linear::forward(const at::Tensor& x) {
    return adapter_acts() ? adapted(x) : sum(x, weight, bias);
}

STRATA_INLINE at::Tensor Linear::forward_of_two(const at::Tensor& a, const at::Tensor& b) {
    return adapter_acts() ? adapted(at::cat({a, b}, -1)) : linear_of_two(a, b, weight, bias);
}

STRATA_INLINE LayerShape Linear::shape() const { return {.in = options.in_features(), .out = options.out_features()}; }

STRATA_INLINE at::Tensor Linear::sum(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) const {
    return linear(x, w, b);
}

STRATA_INLINE Conv2d::Conv2d(std::int64_t C_in, std::int64_t C_out, std::int64_t edge, std::int64_t stride,
                             std::int64_t border, bool has_bias)
    : Conv2dImpl(torch::nn::Conv2dOptions(C_in, C_out, edge).stride(stride).padding(border).bias(has_bias)),
      stride_{stride},
      border_{border} {}

STRATA_INLINE at::Tensor Conv2d::forward(const at::Tensor& x_BChw) {
    return adapter_acts() ? adapted(x_BChw) : sum(x_BChw, weight, bias);
}

STRATA_INLINE LayerShape Conv2d::shape() const {
    return {.in = options.in_channels(),
            .out = options.out_channels(),
            .kernel_height = (*options.kernel_size())[0],
            .kernel_width = (*options.kernel_size())[1]};
}

STRATA_INLINE at::Tensor Conv2d::sum(const at::Tensor& x_BChw, const at::Tensor& w, const at::Tensor& b) const {
    return conv2d(x_BChw, w, b, {.stride = {stride_, stride_}, .padding = {border_, border_}});
}

}  // namespace strata::models
