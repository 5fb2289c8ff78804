#pragma once
// strata/models/layers.hpp - Linear and Conv2d: layers that an adapter can be attached to.
//
// What an adapter does to one layer is a LayerAdapter (models/layer_adapter.hpp); which layers of a model get one is
// adapters/adapt.hpp's. A layer without one computes what libtorch's does, with the same parameters, drawn alike.

#include <cstdint>
#include <memory>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/layer_adapter.hpp>

namespace strata::models {

/// torch::nn::Linear, held by shared_ptr. Parameters `weight` (out, in) and `bias` (out).
class Linear : public torch::nn::LinearImpl, public AdaptableLayer {
public:
    Linear(std::int64_t in, std::int64_t out, bool has_bias = true);
    /// x (..., in) -> (..., out)
    at::Tensor forward(const at::Tensor& x);
    /// The same of a and b side by side, (..., A) and (..., in - A), which are put together only for an adapter.
    at::Tensor forward_of_two(const at::Tensor& a, const at::Tensor& b);

    [[nodiscard]] LayerShape shape() const override;
    [[nodiscard]] const at::Tensor& base_weight() const noexcept override { return weight; }
    [[nodiscard]] const at::Tensor& base_bias() const noexcept override { return bias; }
    [[nodiscard]] at::Tensor sum(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const override;
    [[nodiscard]] torch::nn::Module& module() noexcept override { return *this; }
};

/// torch::nn::Conv2d, held by shared_ptr. Parameters `weight` (out, in, kh, kw) and, unless has_bias is false, `bias` (out).
class Conv2d : public torch::nn::Conv2dImpl, public AdaptableLayer {
public:
    /// Kernels of edge x edge, moved by `stride`, over a picture with a border of zeros.
    Conv2d(std::int64_t C_in, std::int64_t C_out, std::int64_t edge, std::int64_t stride = 1, std::int64_t border = 0,
           bool has_bias = true);
    /// x (B, in, h, w) -> (B, out, h', w')
    at::Tensor forward(const at::Tensor& x_BChw);

    [[nodiscard]] LayerShape shape() const override;
    [[nodiscard]] const at::Tensor& base_weight() const noexcept override { return weight; }
    [[nodiscard]] const at::Tensor& base_bias() const noexcept override { return bias; }
    [[nodiscard]] at::Tensor sum(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const override;
    [[nodiscard]] torch::nn::Module& module() noexcept override { return *this; }

private:
    std::int64_t stride_, border_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/layers.ipp>
#endif
