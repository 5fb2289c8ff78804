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
    return adapter_acts() ? adapted(x) : sum(x, weight, bias);
}

STRATA_INLINE at::Tensor Projection::sum(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) const {
    if (takes_wide_products(x, w)) return linear(x, w, b);
    return b.defined() ? at::linear(x, w, b) : at::matmul(x, w.t());
}

}  // namespace strata::models
