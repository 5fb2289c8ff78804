#pragma once
// strata/models/impl/norms.ipp - bodies of the norms.

#include <strata/models/impl/fused_ops.ipp>
#include <strata/models/impl/unet_ops.ipp>
#include <strata/models/norms.hpp>
#include <strata/models/unet_ops.hpp>

namespace strata::models {

STRATA_INLINE GroupNorm::GroupNorm(std::int64_t groups_, std::int64_t C, double eps_)
    : groups(groups_),
      eps(eps_),
      weight(register_parameter("weight", at::ones({C}))),
      bias(register_parameter("bias", at::zeros({C}))) {}

STRATA_INLINE at::Tensor GroupNorm::forward(const at::Tensor& x) {
    return models::group_norm(x, groups, weight, bias, eps);
}

STRATA_INLINE at::Tensor GroupNorm::silu_of_norm(const at::Tensor& x) {
    return models::group_norm(x, groups, weight, bias, eps, true);
}

STRATA_INLINE LayerNorm::LayerNorm(std::int64_t D, double eps_)
    : eps(eps_),
      weight(register_parameter("weight", at::ones({D}))),
      bias(register_parameter("bias", at::zeros({D}))) {}

STRATA_INLINE at::Tensor LayerNorm::forward(const at::Tensor& x) { return models::layer_norm(x, weight, bias, eps); }

STRATA_INLINE RmsNorm::RmsNorm(std::int64_t D, double eps_)
    : eps(eps_), weight(register_parameter("weight", at::ones({D}))) {}

STRATA_INLINE at::Tensor RmsNorm::forward(const at::Tensor& x) {
    const at::Tensor wide = x.to(detail::wide(x));
    const at::Tensor normed = wide * at::rsqrt(wide.square().mean(-1, true) + eps);
    return (normed * weight.to(wide.scalar_type())).to(x.scalar_type());
}

}  // namespace strata::models
