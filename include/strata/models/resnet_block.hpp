#pragma once
// strata/models/resnet_block.hpp - what U-Nets and autoencoders of the latent diffusion family are built of (Rombach et al. 2022,
// arXiv:2112.10752): residual blocks of two convolutions, and halving and doubling of a picture's edges.
//
// Shapes: B batch, C channels, E width of the embedding of time. Names of parameters are those of the ecosystem's files.

#include <cstdint>
#include <memory>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/layers.hpp>
#include <strata/models/norms.hpp>

namespace strata::models {

/// x + conv2(silu(norm2(conv1(silu(norm1(x))) + time_emb_proj(silu(time))))), convolutions 3x3; conv_shortcut, 1x1, on x where
/// the number of channels changes.
class ResnetBlock : public torch::nn::Module {
public:
    /// `time_width` E, 0 for a block without time.
    ResnetBlock(std::int64_t C_in, std::int64_t C_out, std::int64_t time_width, std::int64_t groups, double eps);
    /// x (B, C_in, h, w), time (B, E) or undefined -> (B, C_out, h, w)
    at::Tensor forward(const at::Tensor& x_BChw, const at::Tensor& time_BE = {});

private:
    std::shared_ptr<GroupNorm> norm1_, norm2_;
    std::shared_ptr<Conv2d> conv1_, conv2_, conv_shortcut_;
    std::shared_ptr<Linear> time_emb_proj_;
};

/// Convolution 3x3 of stride 2. (B, C, h, w) -> (B, C, h/2, w/2)
class Downsample : public torch::nn::Module {
public:
    /// How a border is added: a pixel on all sides (U-Nets), or on the right and at the bottom alone (autoencoders).
    enum class Border { all_sides, right_and_bottom };
    Downsample(std::int64_t C, Border border);
    at::Tensor forward(const at::Tensor& x_BChw);

private:
    Border border_;
    std::shared_ptr<Conv2d> conv_;
};

/// Every pixel twice in both directions, then a convolution 3x3.
class Upsample : public torch::nn::Module {
public:
    explicit Upsample(std::int64_t C);
    /// (B, C, h, w) -> (B, C, height, width); twice h and w where they are 0
    at::Tensor forward(const at::Tensor& x_BChw, std::int64_t height = 0, std::int64_t width = 0);

private:
    std::shared_ptr<Conv2d> conv_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/resnet_block.ipp>
#endif
