#pragma once
// strata/models/attention.hpp - scaled dot-product attention (Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1).
//
// Shapes: B batch, H heads, L queries, S keys, K width of a head, D = H * K width of a token.

#include <cstdint>
#include <optional>

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// Queries and keys whose scores are in memory at once; at least 1 each.
struct AttentionTiles {
    std::int64_t queries = 0;
    std::int64_t keys = 0;
};

/// What is other than usual in an attention.
struct AttentionOptions {
    /// Added to the scaled scores: (B or 1, H or 1, L or 1, S) of fp32, as a relative bias or -inf where a key is not
    /// seen; undefined for none.
    at::Tensor bias_BHLS;
    /// Query i sees keys up to i alone. Takes as many keys as queries.
    bool is_causal = false;
    /// What products of query and key are multiplied by; none: 1/sqrt(K).
    std::optional<double> scale;
    /// Computes in tiles of this size on a CPU; none: chosen by size, and no tiles where all scores take little memory
    /// and there is neither a bias nor a mask.
    std::optional<AttentionTiles> tiles;
};

/// softmax(scale q k^T + bias) v per head, with softmax and its sums in fp32. Differentiable in q, k, v and the bias.
///
///   q (B, H, L, K);  k, v (B, H, S, K), of any strides
/// Returns (B, L, D) in the type of q.
///
/// On a CPU, in fp32 or bf16 with K a multiple of 16, B * H * L * S scores are never in memory where they are more than
/// 16 MiB, or have a bias, a mask or a scale of their own: tiles of them are, in the forward pass and again in backward,
/// which keeps a number a query (Dao et al. 2022, arXiv:2205.14135). With CUDA and libtorch 2.1 or later libtorch's own
/// fused attention is called, but for a bias in 16 bit. All else is the formula as it stands. A query that sees no key
/// gives the mean of the values in tiles, and NaN in the formula. Throws Errc::bad_value in tiles for a bias of another
/// shape, tiles of nothing, and a causal mask over another number of keys than queries.
at::Tensor attention(const at::Tensor& q_BHLK, const at::Tensor& k_BHSK, const at::Tensor& v_BHSK,
                     const AttentionOptions& options = {});

/// (B, L, D) as heads of K: (B, H, L, K), a view.
inline at::Tensor split_heads(const at::Tensor& x_BLD, std::int64_t K) {
    return x_BLD.unflatten(2, {-1, K}).transpose(1, 2);
}

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/attention.ipp>
#endif
