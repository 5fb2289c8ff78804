#pragma once
// strata/models/unet_transformer.hpp - the transformers inside of a U-Net: a picture's positions are tokens that attend
// to each other and to text.
//
// Shapes: B batch, C channels, h x w positions, L = h * w tokens of width C, S text tokens of width E. Names of
// parameters are those of the ecosystem's files.

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/layers.hpp>
#include <strata/models/norms.hpp>
#include <strata/zero/unit.hpp>

namespace strata::models {

/// Attention of tokens to others, or to themselves; parameters to_q, to_k and to_v without bias, to_out.0 with.
class CrossAttention final : public torch::nn::Module {
public:
    ///   C, E  width of what asks, of what is asked
    CrossAttention(std::int64_t C, std::int64_t E, std::int64_t heads);
    at::Tensor forward(const at::Tensor& x_BLC, const at::Tensor& context_BSE);

private:
    std::int64_t head_width_;
    std::shared_ptr<Linear> to_q_, to_k_, to_v_, to_out_;
};

/// x -> (value * gelu(gate)) W with [value, gate] = x V (GEGLU, Shazeer 2020, arXiv:2002.05202), gelu by the error
/// function. Four times as wide inside; parameters net.0.proj and net.2.
class GatedFeedForward final : public torch::nn::Module {
public:
    explicit GatedFeedForward(std::int64_t C);
    at::Tensor forward(const at::Tensor& x_BLC);

private:
    std::shared_ptr<Linear> in_, out_;
};

/// Attention to the picture, attention to the text, feed-forward: each of a layer norm, and added to what it was given.
class TransformerBlock : public torch::nn::Module {
public:
    TransformerBlock(std::int64_t C, std::int64_t E, std::int64_t heads);
    /// tokens (B, L, C), text (B, S, E) -> (B, L, C)
    at::Tensor forward(const at::Tensor& x_BLC, const at::Tensor& context_BSE);

private:
    std::shared_ptr<LayerNorm> norm1_, norm2_, norm3_;
    std::shared_ptr<CrossAttention> attn1_, attn2_;
    std::shared_ptr<GatedFeedForward> ff_;
};

/// A linear layer on tokens, C to C, whose weight may also have the shape of a convolution 1x1, which is the same sum.
class TokenProjection final : public torch::nn::Module, public AdaptableLayer {
public:
    TokenProjection(std::int64_t C, bool as_convolution);
    at::Tensor forward(const at::Tensor& x_BLC);

    /// A linear layer's, whatever shape the weight has.
    [[nodiscard]] LayerShape shape() const override;
    [[nodiscard]] const at::Tensor& base_weight() const noexcept override { return weight_; }
    [[nodiscard]] const at::Tensor& base_bias() const noexcept override { return bias_; }
    [[nodiscard]] at::Tensor sum(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const override;
    [[nodiscard]] torch::nn::Module& module() noexcept override { return *this; }

private:
    at::Tensor weight_, bias_;
};

/// x + what transformer blocks make of its positions; each block is a Unit. Parameters norm (group norm, eps 1e-6),
/// proj_in, transformer_blocks.N, proj_out.
class SpatialTransformer final : public torch::nn::Module {
public:
    struct Options {
        std::int64_t C;  ///< a multiple of heads and of norm_groups
        std::int64_t E;
        std::int64_t heads;
        std::int64_t depth;  ///< transformer blocks
        std::int64_t norm_groups;
        bool linear_projection;  ///< false: projections have weights of convolutions
    };
    explicit SpatialTransformer(const Options& options);
    /// x (B, C, h, w), text (B, S, E) -> (B, C, h, w)
    at::Tensor forward(const at::Tensor& x_BChw, const at::Tensor& context_BSE);

private:
    std::shared_ptr<GroupNorm> norm_;
    std::shared_ptr<TokenProjection> proj_in_, proj_out_;
    std::vector<std::shared_ptr<Unit<TransformerBlock>>> blocks_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/unet_transformer.ipp>
#endif
