#pragma once
// strata/models/impl/attention.ipp - attention by its formula, one pass over the scores on a CPU; and which form is taken.

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <strata/core/error.hpp>
#include <strata/models/attention.hpp>
#include <strata/models/impl/attention_tiles.ipp>
#include <strata/models/impl/fused_ops.ipp>
#include <strata/models/wide_products.hpp>
#include <strata/zero/torch_version.hpp>

namespace strata::models {

namespace detail {

/// A batch of products in the type of a.
inline at::Tensor products(const at::Tensor& a, const at::Tensor& b) {
    return takes_wide_products(a, b) ? wide_bmm(a, b) : at::bmm(a, b);
}

struct Attention : Function<Attention> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        const std::int64_t B = q.size(0), H = q.size(1), L = q.size(2), S = k.size(2), K = q.size(3);
        const at::Tensor qs = q.reshape({B * H, L, K});
        const at::Tensor ks = k.reshape({B * H, S, K});
        const at::Tensor vs = v.reshape({B * H, S, K});
        at::Tensor p = products(qs, ks.transpose(1, 2));
        by_type(p, [&]<class T>(T) { kernels::softmax(data<T>(p), B * H * L, S, scale_of(K)); });
        ctx->save_for_backward({qs, ks, vs, p});
        return products(p, vs).view({B, H, L, K}).transpose(1, 2).reshape({B, L, H * K});
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &p = saved[3];
        const std::int64_t B = grads[0].size(0), L = q.size(1), S = k.size(1), K = q.size(2), H = q.size(0) / B;
        const at::Tensor grad = grads[0].view({B, L, H, K}).transpose(1, 2).reshape({B * H, L, K});
        const at::Tensor grad_v = products(p.transpose(1, 2), grad);
        at::Tensor grad_s = products(grad, v.transpose(1, 2));
        by_type(p,
                [&]<class T>(T) { kernels::softmax_backward(data<T>(grad_s), data<T>(p), B * H * L, S, scale_of(K)); });
        const at::Tensor grad_q = products(grad_s, k);
        const at::Tensor grad_k = products(grad_s.transpose(1, 2), q);
        return {grad_q.view({B, H, L, K}), grad_k.view({B, H, S, K}), grad_v.view({B, H, S, K})};
    }
    static float scale_of(std::int64_t K) { return 1.0f / std::sqrt(static_cast<float>(K)); }
};

/// No bias, no mask and the usual scale: what Attention, above, computes.
inline bool is_plain(const AttentionOptions& options) {
    return !options.bias_BHLS.defined() && !options.is_causal && !options.scale;
}

/// Whether scores are computed tile by tile. The formula keeps them several times, in fp32, where they are not plain: so
/// these are in tiles however few they are, and so is bf16 whose products are by way of fp32: a tile stays fp32 between
/// them.
inline bool takes_tiles(const at::Tensor& q_BHLK, std::int64_t S, const AttentionOptions& options) {
    if (!kernels_apply(q_BHLK, q_BHLK.size(3))) return false;
    const std::int64_t scores = q_BHLK.size(0) * q_BHLK.size(1) * q_BHLK.size(2) * S;
    return options.tiles || !is_plain(options) || takes_wide_products(q_BHLK, q_BHLK) ||
           scores * static_cast<std::int64_t>(q_BHLK.element_size()) > most_score_bytes;
}

/// Throws Errc::bad_value for what the kernels, which take pointers, would read beyond.
inline void check_tiled(const at::Tensor& q_BHLK, std::int64_t S, const AttentionOptions& options) {
    const auto refuse = [](const std::string& what, std::string_view fix) {
        throw Error{Errc::bad_value, "attention() got " + what, fix};
    };
    const std::int64_t B = q_BHLK.size(0), H = q_BHLK.size(1), L = q_BHLK.size(2);
    const std::string scores = std::to_string(L) + " queries and " + std::to_string(S) + " keys";
    if (options.tiles && (options.tiles->queries < 1 || options.tiles->keys < 1))
        refuse("tiles of " + std::to_string(options.tiles->queries) + " queries and " +
                   std::to_string(options.tiles->keys) + " keys",
               "give tiles of at least one of each, or none");
    if (S < 1 || (options.is_causal && L != S))
        refuse(scores + (options.is_causal ? " under a causal mask" : ""),
               "give at least one key, and as many keys as queries under a causal mask");
    const at::Tensor& bias = options.bias_BHLS;
    const auto fits = [&](std::int64_t dim, std::int64_t n) { return bias.size(dim) == n || bias.size(dim) == 1; };
    if (bias.defined() && (bias.dim() != 4 || !fits(0, B) || !fits(1, H) || !fits(2, L) || bias.size(3) != S ||
                           bias.device() != at::kCPU))
        refuse("a bias of shape " + c10::str(bias.sizes()) + " for a batch of " + std::to_string(B) + ", " +
                   std::to_string(H) + " heads, " + scores,
               "give one of (batch or 1, heads or 1, queries or 1, keys), on the CPU as they are");
}

inline double scale_of(const at::Tensor& q_BHLK, const AttentionOptions& options) {
    return options.scale.value_or(1.0 / std::sqrt(static_cast<double>(q_BHLK.size(3))));
}

#if STRATA_TORCH_HAS_FUSED_ATTENTION
/// libtorch takes a mask of its operands' type, and no mask beside a causal one.
inline bool takes_libtorchs(const at::Tensor& q_BHLK, const AttentionOptions& options) {
    return q_BHLK.is_cuda() &&
           (!options.bias_BHLS.defined() || (q_BHLK.scalar_type() == at::kFloat && !options.is_causal));
}
inline at::Tensor libtorchs_attention(const at::Tensor& q_BHLK, const at::Tensor& k_BHSK, const at::Tensor& v_BHSK,
                                      const AttentionOptions& options) {
    c10::optional<at::Tensor> bias;
    if (options.bias_BHLS.defined()) bias = options.bias_BHLS;
    return at::scaled_dot_product_attention(q_BHLK, k_BHSK, v_BHSK, bias, 0.0, options.is_causal,
                                            scale_of(q_BHLK, options));
}
#endif

}  // namespace detail

STRATA_INLINE at::Tensor attention(const at::Tensor& q_BHLK, const at::Tensor& k_BHSK, const at::Tensor& v_BHSK,
                                   const AttentionOptions& options) {
#if STRATA_TORCH_HAS_FUSED_ATTENTION
    if (detail::takes_libtorchs(q_BHLK, options))
        return detail::libtorchs_attention(q_BHLK, k_BHSK, v_BHSK, options).transpose(1, 2).flatten(2);
#endif
    const double scale = detail::scale_of(q_BHLK, options);
    if (detail::takes_tiles(q_BHLK, k_BHSK.size(2), options)) {
        detail::check_tiled(q_BHLK, k_BHSK.size(2), options);
        const detail::TiledForm form{options.tiles.value_or(detail::usual_tiles), scale, options.is_causal};
        const at::Tensor bias = options.bias_BHLS.defined() ? options.bias_BHLS : detail::floats({0});
        return detail::TiledAttention::apply(q_BHLK, k_BHSK, v_BHSK, bias, form);
    }
    if (detail::is_plain(options) && detail::kernels_apply(q_BHLK, 16))
        return detail::Attention::apply(q_BHLK, k_BHSK, v_BHSK);
    at::Tensor s = at::matmul(q_BHLK, k_BHSK.transpose(2, 3)).to(detail::wide(q_BHLK)) * scale;
    if (options.bias_BHLS.defined()) s = s + options.bias_BHLS;
    if (options.is_causal)
        s = s.masked_fill(at::ones({s.size(2), s.size(3)}, s.options().dtype(at::kBool)).triu(1),
                          -std::numeric_limits<double>::infinity());
    return at::matmul(at::softmax(s, -1).to(q_BHLK.scalar_type()), v_BHSK).transpose(1, 2).flatten(2);
}

}  // namespace strata::models
