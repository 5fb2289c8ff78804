#pragma once
// strata/models/impl/projection.ipp - bodies of Projection.

#include <strata/models/fused_ops.hpp>
#include <strata/models/projection.hpp>
#include <strata/models/wide_products.hpp>

namespace strata::models {

STRATA_INLINE Projection::Projection(std::int64_t in, std::int64_t out, bool has_bias, const at::TensorOptions& of)
    : weight(register_parameter("weight", at::zeros({out, in}, of))) {
    if (has_bias) bias = register_parameter("bias", at::zeros({out}, of));
}

STRATA_INLINE at::Tensor Projection::forward(const at::Tensor& x) {
    if (takes_wide_products(x, weight)) return linear(x, weight, bias);
    return bias.defined() ? at::linear(x, weight, bias) : at::matmul(x, weight.t());
}

}  // namespace strata::models
