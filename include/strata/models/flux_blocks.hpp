#pragma once
// strata/models/flux_blocks.hpp - the two kinds of block of a Flux transformer, under their public parameter names.
//
// Black Forest Labs' Flux.1 (2024): a double-stream block (MM-DiT, Esser et al. 2024, arXiv:2403.03206, section 4)
// keeps own weights for text and image and lets them attend to each other; a single-stream block treats
// [text; image] alike and computes attention and feed-forward side by side.
//
// Shapes: B batch, T text tokens, I image tokens, L = T + I, D width, K width of a head.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/layers.hpp>
#include <strata/models/rotary.hpp>

namespace strata::models {

/// `weight` of an RMS norm over a head; rms_norm_rotate applies it.
struct HeadNorm final : torch::nn::Module {
    explicit HeadNorm(std::int64_t K);
    at::Tensor weight;
};

/// What parameters are before weights are read into them.
enum class FluxStart : std::uint8_t {
    libtorch,  ///< as libtorch draws those of a linear layer: for weights that come from a file
    /// Modulations and what comes out are zero, so that every block begins as the identity (adaLN-Zero, Peebles & Xie
    /// 2023), and the conditioning has size 1: for a model that learns from nothing.
    identity,
};

/// A projection of the conditioning vector to `chunks` modulations.
struct Modulation final : torch::nn::Module {
    Modulation(std::int64_t D, std::int64_t chunks, FluxStart start);
    /// conditioning (B, D), already through silu -> chunks tensors (B, D)
    std::vector<at::Tensor> forward(const at::Tensor& conditioning_BD);
    std::int64_t chunks;
    std::shared_ptr<Linear> linear;
};

/// Linear, gelu (tanh form), Linear, with four times the width between; parameters net.0.proj.* and net.2.*.
struct FeedForward final : torch::nn::Module {
    explicit FeedForward(std::int64_t D);
    at::Tensor forward(const at::Tensor& x);
    std::shared_ptr<Linear> in;
    std::shared_ptr<Linear> out;
};

/// q, k, v of image and text, their head norms, and the two output projections.
struct JointProjections final : torch::nn::Module {
    JointProjections(std::int64_t D, std::int64_t K);
    std::shared_ptr<HeadNorm> norm_q, norm_k, norm_added_q, norm_added_k;
    std::shared_ptr<Linear> to_q, to_k, to_v, add_q_proj, add_k_proj, add_v_proj, to_out, to_add_out;
};

/// Double-stream block.
class JointBlock : public torch::nn::Module {
public:
    /// Width D = heads * K.
    JointBlock(std::int64_t heads, std::int64_t K, FluxStart start = FluxStart::libtorch);
    /// Returns (image (B, I, D), text (B, T, D)). conditioning (B, D) is already through silu; bias (B, 1, 1, L) fp32
    /// is added to the scores of every key, and undefined where all tokens are seen.
    std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& image_BID, const at::Tensor& text_BTD,
                                              const at::Tensor& conditioning_BD, const RotaryTable& rotary,
                                              const at::Tensor& bias_B11L);

private:
    std::shared_ptr<Modulation> norm1_, norm1_context_;
    std::shared_ptr<JointProjections> attn_;
    std::shared_ptr<FeedForward> ff_, ff_context_;
};

/// q, k, v of a single-stream block and their head norms.
struct SingleProjections final : torch::nn::Module {
    SingleProjections(std::int64_t D, std::int64_t K);
    std::shared_ptr<HeadNorm> norm_q, norm_k;
    std::shared_ptr<Linear> to_q, to_k, to_v;
};

/// Single-stream block.
class SingleBlock : public torch::nn::Module {
public:
    SingleBlock(std::int64_t heads, std::int64_t K, FluxStart start = FluxStart::libtorch);
    /// x (B, L, D) -> (B, L, D). conditioning and bias as a JointBlock takes them.
    at::Tensor forward(const at::Tensor& x_BLD, const at::Tensor& conditioning_BD, const RotaryTable& rotary,
                       const at::Tensor& bias_B11L);

private:
    std::shared_ptr<Modulation> norm_;
    std::shared_ptr<Linear> proj_mlp_, proj_out_;
    std::shared_ptr<SingleProjections> attn_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/flux_blocks.ipp>
#endif
