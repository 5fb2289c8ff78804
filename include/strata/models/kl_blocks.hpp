#pragma once
// strata/models/kl_blocks.hpp - the blocks that AutoencoderKl is made of: on the way down, in the middle, and on the way up.
//
// Shapes: B batch, C channels, h and w of a picture at a block's resolution. Norms have eps 1e-6.

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/autoencoder_kl_options.hpp>
#include <strata/models/norms.hpp>
#include <strata/models/resnet_block.hpp>
#include <strata/zero/unit.hpp>

namespace strata::models {

/// Attention of one head over all pixels, added to its input: group_norm, to_q, to_k, to_v, to_out.0. (B, C, h, w) ->
/// the same
class PixelAttention final : public torch::nn::Module {
public:
    PixelAttention(std::int64_t C, std::int64_t groups);
    at::Tensor forward(const at::Tensor& x_BChw);

private:
    std::shared_ptr<GroupNorm> group_norm_;
    std::shared_ptr<Linear> to_q_, to_k_, to_v_, to_out_;
};

/// Residual blocks, then the picture halved. (B, C_in, h, w) -> (B, C_out, h/2, w/2)
class KlDownBlock : public torch::nn::Module {
public:
    KlDownBlock(std::int64_t C_in, std::int64_t C_out, std::int64_t layers, std::int64_t groups, bool halves);
    at::Tensor forward(const at::Tensor& x_BChw);

private:
    std::vector<std::shared_ptr<ResnetBlock>> resnets_;
    std::shared_ptr<Downsample> downsample_;  // none in the last block
};

/// A residual block, PixelAttention, a residual block. (B, C, h, w) -> the same
class KlMidBlock : public torch::nn::Module {
public:
    KlMidBlock(std::int64_t C, std::int64_t groups, bool has_attention);
    at::Tensor forward(const at::Tensor& x_BChw);

private:
    std::vector<std::shared_ptr<ResnetBlock>> resnets_;
    std::shared_ptr<PixelAttention> attention_;
};

/// Residual blocks, then the picture doubled. (B, C_in, h, w) -> (B, C_out, 2h, 2w)
class KlUpBlock : public torch::nn::Module {
public:
    KlUpBlock(std::int64_t C_in, std::int64_t C_out, std::int64_t layers, std::int64_t groups, bool doubles);
    at::Tensor forward(const at::Tensor& x_BChw);

private:
    std::vector<std::shared_ptr<ResnetBlock>> resnets_;
    std::shared_ptr<Upsample> upsample_;  // none in the last block
};

/// (B, 3, H, W) -> (B, 2C, h, w): means, then log variances.
struct KlEncoder final : torch::nn::Module {
    explicit KlEncoder(const AutoencoderKlOptions& options);
    at::Tensor forward(const at::Tensor& images_B3HW);
    std::shared_ptr<Conv2d> conv_in, conv_out;
    std::vector<std::shared_ptr<Unit<KlDownBlock>>> down_blocks;
    std::shared_ptr<Unit<KlMidBlock>> mid_block;
    std::shared_ptr<GroupNorm> conv_norm_out;
};

/// (B, C, h, w) -> (B, 3, H, W)
struct KlDecoder final : torch::nn::Module {
    explicit KlDecoder(const AutoencoderKlOptions& options);
    at::Tensor forward(const at::Tensor& latents_BChw);
    std::shared_ptr<Conv2d> conv_in, conv_out;
    std::shared_ptr<Unit<KlMidBlock>> mid_block;
    std::vector<std::shared_ptr<Unit<KlUpBlock>>> up_blocks;
    std::shared_ptr<GroupNorm> conv_norm_out;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/kl_blocks.ipp>
#endif
