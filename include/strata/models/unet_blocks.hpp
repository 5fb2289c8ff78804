#pragma once
// strata/models/unet_blocks.hpp - what a U-Net does at one resolution, on its way down, in the middle and on its way
// up.
//
// Shapes: B batch, C channels, h x w positions, T width of the embedding of time, S text tokens of width E. Residual
// blocks, transformer blocks and what halves or doubles are Units.

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/resnet_block.hpp>
#include <strata/models/unet_options.hpp>
#include <strata/models/unet_transformer.hpp>
#include <strata/zero/unit.hpp>

namespace strata::models {

/// Residual blocks, and attentions behind them; parameters resnets.N and attentions.N.
class UnetBlock : public torch::nn::Module {
public:
    /// `attentions` of them where the shape has a depth.
    UnetBlock(const UnetOptions& options, const UnetBlockShape& shape, std::size_t attentions);

protected:
    /// Residual block `i`, and the attention behind it where there is one.
    at::Tensor layer(std::size_t i, const at::Tensor& x_BChw, const at::Tensor& time_BT, const at::Tensor& context_BSE);
    [[nodiscard]] std::size_t layers() const noexcept { return resnets_.size(); }

private:
    std::vector<std::shared_ptr<Unit<ResnetBlock>>> resnets_;
    std::vector<std::shared_ptr<SpatialTransformer>> attentions_;
};

/// Layers, then half the edges where it is not the last; parameters downsamplers.0 besides.
class UnetDownBlock final : public UnetBlock {
public:
    UnetDownBlock(const UnetOptions& options, const UnetBlockShape& shape);
    /// Adds what each layer and the halving gave to `skips`.
    at::Tensor forward(at::Tensor x_BChw, const at::Tensor& time_BT, const at::Tensor& context_BSE,
                       std::vector<at::Tensor>& skips);

private:
    std::shared_ptr<Unit<Downsample>> downsample_;
};

/// Two residual blocks with an attention between them.
class UnetMidBlock final : public UnetBlock {
public:
    UnetMidBlock(const UnetOptions& options, const UnetBlockShape& shape);
    at::Tensor forward(const at::Tensor& x_BChw, const at::Tensor& time_BT, const at::Tensor& context_BSE);
};

/// Layers, each of what came before it and the last of `skips`, then the edges of the next of them where it is not the
/// last block; parameters upsamplers.0 besides.
class UnetUpBlock final : public UnetBlock {
public:
    UnetUpBlock(const UnetOptions& options, const UnetBlockShape& shape);
    /// Takes one of `skips` a layer.
    at::Tensor forward(at::Tensor x_BChw, const at::Tensor& time_BT, const at::Tensor& context_BSE,
                       std::vector<at::Tensor>& skips);

private:
    std::shared_ptr<Unit<Upsample>> upsample_;
};

/// Two linear layers with silu between; parameters linear_1.* and linear_2.*.
class UnetEmbedding final : public torch::nn::Module {
public:
    UnetEmbedding(std::int64_t in, std::int64_t T);
    at::Tensor forward(const at::Tensor& x);

private:
    std::shared_ptr<Linear> linear_1_, linear_2_;
};

/// [cos | sin] of each number at `width` / 2 geometric frequencies from 1 down to, not including, 1/10000 (Vaswani et
/// al. 2017, arXiv:1706.03762, section 3.5). (N) -> (N, width) fp32.
at::Tensor unet_features(const at::Tensor& numbers_N, std::int64_t width);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/unet_blocks.ipp>
#endif
