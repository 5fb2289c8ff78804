#pragma once
// strata/models/projection.hpp - Projection: a linear layer made in the type and on the device that its weights will
// have.

#include <cstdint>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/layer_adapter.hpp>

namespace strata::models {

/// x times weight transposed, plus bias if there is one. Parameters `weight` (out, in) and `bias` (out), zero at the
/// start: an encoder that is not trained from nothing needs no other start, and that of torch::nn::Linear takes a
/// minute for one of five billion parameters.
struct Projection final : torch::nn::Module, AdaptableLayer {
    Projection(std::int64_t in, std::int64_t out, bool has_bias, const at::TensorOptions& of);
    /// x (..., in) -> (..., out)
    at::Tensor forward(const at::Tensor& x);

    [[nodiscard]] LayerShape shape() const override { return {.in = weight.size(1), .out = weight.size(0)}; }
    [[nodiscard]] const at::Tensor& base_weight() const noexcept override { return weight; }
    [[nodiscard]] const at::Tensor& base_bias() const noexcept override { return bias; }
    [[nodiscard]] at::Tensor sum(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) const override;
    [[nodiscard]] torch::nn::Module& module() noexcept override { return *this; }

    at::Tensor weight, bias;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/projection.ipp>
#endif
