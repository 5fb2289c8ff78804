#pragma once
// strata/models/impl/norms.ipp - bodies of the norms.

#include <strata/models/impl/fused_ops.ipp>
#include <strata/models/norms.hpp>

namespace strata::models {

STRATA_INLINE GroupNorm::GroupNorm(std::int64_t groups_, std::int64_t C, double eps_)
    : groups(groups_),
      eps(eps_),
      weight(register_parameter("weight", at::ones({C}))),
      bias(register_parameter("bias", at::zeros({C}))) {}

STRATA_INLINE at::Tensor GroupNorm::forward(const at::Tensor& x) {
    const at::ScalarType wide = detail::wide(x);
    return at::group_norm(x.to(wide), groups, weight.to(wide), bias.to(wide), eps).to(x.scalar_type());
}

STRATA_INLINE LayerNorm::LayerNorm(std::int64_t D, double eps_)
    : eps(eps_),
      weight(register_parameter("weight", at::ones({D}))),
      bias(register_parameter("bias", at::zeros({D}))) {}

STRATA_INLINE at::Tensor LayerNorm::forward(const at::Tensor& x) {
    const at::ScalarType wide = detail::wide(x);
    return at::layer_norm(x.to(wide), weight.sizes(), weight.to(wide), bias.to(wide), eps).to(x.scalar_type());
}

STRATA_INLINE RmsNorm::RmsNorm(std::int64_t D, double eps_)
    : eps(eps_), weight(register_parameter("weight", at::ones({D}))) {}

STRATA_INLINE at::Tensor RmsNorm::forward(const at::Tensor& x) {
    const at::Tensor wide = x.to(detail::wide(x));
    const at::Tensor normed = wide * at::rsqrt(wide.square().mean(-1, true) + eps);
    return (normed * weight.to(wide.scalar_type())).to(x.scalar_type());
}

}  // namespace strata::models
