#pragma once
// strata/models/flux_conditioning.hpp - what tells the blocks of a Flux sigma, guidance and the whole caption.

#include <cstdint>
#include <memory>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/flux_blocks.hpp>

namespace strata::models {

/// Two linear layers with silu between; parameters linear_1.* and linear_2.*.
struct Embedder final : torch::nn::Module {
    Embedder(std::int64_t in, std::int64_t D, FluxStart start);
    at::Tensor forward(const at::Tensor& x);
    std::shared_ptr<Linear> linear_1, linear_2;
};

/// Children timestep_embedder, guidance_embedder where the model was distilled with guidance, and text_embedder.
struct TimeTextEmbedding final : torch::nn::Module {
    TimeTextEmbedding(std::int64_t pooled, std::int64_t D, bool has_guidance, FluxStart start);
    /// sigma (B), guidance (B) and pooled text (B, E) -> their embedded sum (B, D). guidance is used where there is an
    /// embedder for it, as the plain scale (3.5), and embedded as sigma is: both times 1000.
    at::Tensor forward(const at::Tensor& sigma_B, const at::Tensor& guidance_B, const at::Tensor& pooled_BE);
    std::shared_ptr<Embedder> timestep_embedder, guidance_embedder, text_embedder;
};

/// [cos | sin] of 1000 * sigma at 128 geometric frequencies from 1 to 1/10000; (B) -> (B, 256) fp32.
at::Tensor timestep_features(const at::Tensor& sigma_B);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/flux_conditioning.ipp>
#endif
