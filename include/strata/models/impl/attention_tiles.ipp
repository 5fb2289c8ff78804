#pragma once
// strata/models/impl/attention_tiles.ipp - attention in tiles over queries and keys, forward and backward.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <strata/models/attention.hpp>
#include <strata/models/attention_kernels.hpp>
#include <strata/models/impl/attention_kernels.ipp>
#include <strata/models/impl/fused_ops.ipp>
#include <strata/models/wide_blocks.hpp>
#include <strata/models/wide_products.hpp>

namespace strata::models::detail {

/// What a TiledAttention is besides its tensors.
struct TiledForm {
    AttentionTiles tiles;
    double scale = 1.0;
    bool is_causal = false;
};

/// The first `rows` rows of a buffer of rows of n.
inline at::Tensor top(const at::Tensor& buffer, std::int64_t rows, std::int64_t n) {
    return buffer.narrow(0, 0, rows * n).view({rows, n});
}

/// The bias of one head, (L or 1, S), dense.
inline at::Tensor bias_of(const at::Tensor& bias, std::int64_t b, std::int64_t h) {
    if (!bias.defined()) return bias;
    return bias.select(0, bias.size(0) == 1 ? 0 : b).select(0, bias.size(1) == 1 ? 0 : h);
}

/// The walk over tiles of one head: what each is to the kernels.
struct TileWalk {
    TiledForm form;
    std::int64_t L = 0, S = 0;
    at::Tensor bias;  // (L or 1, S) or undefined

    /// One past the last key that queries from l on, `rows` of them, see.
    [[nodiscard]] std::int64_t end_of_keys(std::int64_t l, std::int64_t rows) const {
        return form.is_causal ? std::min(S, l + rows) : S;
    }
    [[nodiscard]] kernels::ScoreTile tile(std::int64_t l, std::int64_t rows, std::int64_t s, std::int64_t keys) const {
        kernels::ScoreTile tile;
        tile.queries = rows;
        tile.keys = keys;
        tile.scale = static_cast<float>(form.scale);
        tile.is_causal = form.is_causal;
        tile.seen_by_first = form.is_causal ? l - s + 1 : keys;
        if (bias.defined()) {
            tile.bias_stride = bias.size(0) == 1 ? 0 : S;
            tile.bias = data<float>(bias) + l * tile.bias_stride + s;
        }
        return tile;
    }
};

/// Calls run(T{}, C{}): T is q's type and C that of its tiles, which is fp32 where products of T's are slow.
template <class Run>
void by_types(const at::Tensor& q, const Run& run) {
    by_type(q, [&]<class T>(T) {
        if (takes_wide_products(q, q)) {
            run(T{}, float{});
        } else {
            run(T{}, T{});
        }
    });
}
inline at::ScalarType tile_type(const at::Tensor& q) {
    return takes_wide_products(q, q) ? at::kFloat : q.scalar_type();
}

/// Dense rows of T as rows of C, in `buffer` if that is another type.
template <class T, class C>
at::Tensor as_tile(const at::Tensor& x, const at::Tensor& buffer) {
    if constexpr (std::is_same_v<T, C>) {
        return x;
    } else {
        at::Tensor wide = top(buffer, x.size(0), x.size(1));
        kernels::widen(data<C>(wide), data<T>(x), x.size(0), x.size(1), x.stride(0));
        return wide;
    }
}

struct TiledAttention : Function<TiledAttention> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q_, const at::Tensor& k_, const at::Tensor& v_,
                              const at::Tensor& bias_, const TiledForm& form) {
        // libtorch 1.13 takes no undefined input: one without elements is none.
        const at::Tensor q = q_.contiguous(), k = k_.contiguous(), v = v_.contiguous();
        const at::Tensor bias = bias_.numel() > 0 ? bias_.to(at::kFloat).contiguous() : at::Tensor();
        const std::int64_t B = q.size(0), H = q.size(1), L = q.size(2), S = k.size(2), K = q.size(3), D = H * K;
        const std::int64_t Q = std::min(form.tiles.queries, L), N = std::min(form.tiles.keys, S);
        at::Tensor y = at::empty({B, L, D}, q.options());
        at::Tensor logsum = floats({B, H, L});
        const at::TensorOptions of_tiles = q.options().dtype(tile_type(q));
        const bool is_other = of_tiles.dtype() != q.dtype();
        const at::Tensor scores = at::empty({Q * N}, of_tiles), part = at::empty({Q * K}, of_tiles);
        const at::Tensor wide_q = floats({is_other ? Q * K : 0}), wide_k = floats({is_other ? N * K : 0});
        const at::Tensor acc = floats({Q * K}), peak = floats({Q}), total = floats({Q}), correction = floats({Q});
        by_types(q, [&]<class T, class C>(T, C) {
            for (std::int64_t b = 0; b < B; ++b)
                for (std::int64_t h = 0; h < H; ++h) {
                    const at::Tensor qh = q[b][h], kh = k[b][h], vh = v[b][h];
                    const TileWalk walk{form, L, S, bias_of(bias, b, h)};
                    for (std::int64_t l = 0; l < L; l += Q) {
                        const std::int64_t rows = std::min(Q, L - l), end = walk.end_of_keys(l, rows);
                        const at::Tensor ql = as_tile<T, C>(qh.narrow(0, l, rows), wide_q);
                        peak.fill_(-3.0e38f);
                        total.zero_();
                        for (std::int64_t s = 0; s < end; s += N) {
                            const std::int64_t keys = std::min(N, end - s);
                            at::Tensor p = top(scores, rows, keys), o = top(part, rows, K);
                            at::mm_out(p, ql, as_tile<T, C>(kh.narrow(0, s, keys), wide_k).t());
                            kernels::running_softmax(data<C>(p), walk.tile(l, rows, s, keys), data<float>(peak),
                                                     data<float>(total), data<float>(correction));
                            at::mm_out(o, p, as_tile<T, C>(vh.narrow(0, s, keys), wide_k));
                            if (s == 0) acc.narrow(0, 0, rows * K).zero_();
                            kernels::add_part(data<float>(acc), data<C>(o), data<float>(correction), rows, K);
                        }
                        kernels::divide_rows(data<T>(y) + (b * L + l) * D + h * K, D,
                                             data<float>(logsum) + (b * H + h) * L + l, data<float>(acc),
                                             data<float>(peak), data<float>(total), rows, K);
                    }
                }
        });
        ctx->save_for_backward({q, k, v, bias, y, logsum});
        ctx->saved_data["queries"] = Q;
        ctx->saved_data["keys"] = N;
        ctx->saved_data["scale"] = form.scale;
        ctx->saved_data["is_causal"] = form.is_causal;
        ctx->saved_data["bias_type"] = static_cast<std::int64_t>(bias.defined() ? bias_.scalar_type() : at::kFloat);
        return y;
    }

    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &bias = saved[3], &y = saved[4],
                         &logsum = saved[5];
        const TiledForm form{{ctx->saved_data["queries"].toInt(), ctx->saved_data["keys"].toInt()},
                             ctx->saved_data["scale"].toDouble(),
                             ctx->saved_data["is_causal"].toBool()};
        const std::int64_t B = q.size(0), H = q.size(1), L = q.size(2), S = k.size(2), K = q.size(3), D = H * K;
        const std::int64_t Q = form.tiles.queries, N = form.tiles.keys;
        const at::Tensor grad = grads[0].contiguous();
        at::Tensor grad_q = at::empty_like(q), grad_k = at::empty_like(k), grad_v = at::empty_like(v), grad_bias;
        if (bias.defined() && ctx->needs_input_grad(3)) grad_bias = at::zeros_like(bias);
        const at::TensorOptions of_tiles = q.options().dtype(tile_type(q));
        const std::int64_t wide = of_tiles.dtype() != q.dtype() ? K : 0;
        const at::Tensor scores = at::empty({Q * N}, of_tiles), slopes = at::empty({Q * N}, of_tiles);
        const at::Tensor part = at::empty({std::max(Q, N) * K}, q.options()), grad_h = at::empty({L * K}, q.options());
        const at::Tensor wide_q = floats({Q * wide}), wide_g = floats({Q * wide}), wide_k = floats({N * wide}),
                         wide_v = floats({N * wide});
        const at::Tensor dots = floats({L}), sum_q = floats({Q * K}), sum_k = floats({S * K}), sum_v = floats({S * K});
        by_types(q, [&]<class T, class C>(T, C) {
            // Sums over tiles are fp32: sum += a b.
            const auto add_product = [&](const at::Tensor& sum, std::int64_t row, const at::Tensor& a,
                                         const at::Tensor& b) {
                const std::int64_t rows = a.size(0);
                if constexpr (std::is_same_v<C, float>) {
                    at::Tensor slice = sum.narrow(0, row * K, rows * K).view({rows, K});
                    at::addmm_out(slice, slice, a, b);
                } else {
                    at::Tensor product = top(part, rows, K);
                    at::mm_out(product, a, b);
                    kernels::add_part(data<float>(sum) + row * K, data<T>(product), nullptr, rows, K);
                }
            };
            for (std::int64_t b = 0; b < B; ++b)
                for (std::int64_t h = 0; h < H; ++h) {
                    const at::Tensor qh = q[b][h], kh = k[b][h], vh = v[b][h], gh = grad_h.view({L, K});
                    const TileWalk walk{form, L, S, bias_of(bias, b, h)};
                    const at::Tensor bias_sum = bias_of(grad_bias, b, h);
                    gh.copy_(grad[b].narrow(1, h * K, K));
                    kernels::row_dots(data<float>(dots), data<T>(grad) + b * L * D + h * K,
                                      data<T>(y) + b * L * D + h * K, L, K, D);
                    sum_k.zero_();
                    sum_v.zero_();
                    for (std::int64_t l = 0; l < L; l += Q) {
                        const std::int64_t rows = std::min(Q, L - l), end = walk.end_of_keys(l, rows);
                        const at::Tensor ql = as_tile<T, C>(qh.narrow(0, l, rows), wide_q),
                                         gl = as_tile<T, C>(gh.narrow(0, l, rows), wide_g);
                        sum_q.zero_();
                        for (std::int64_t s = 0; s < end; s += N) {
                            const std::int64_t keys = std::min(N, end - s);
                            const at::Tensor ks = as_tile<T, C>(kh.narrow(0, s, keys), wide_k),
                                             vs = as_tile<T, C>(vh.narrow(0, s, keys), wide_v);
                            at::Tensor p = top(scores, rows, keys), ds = top(slopes, rows, keys);
                            at::mm_out(p, ql, ks.t());
                            at::mm_out(ds, gl, vs.t());
                            kernels::score_gradient(data<C>(p), data<C>(ds), walk.tile(l, rows, s, keys),
                                                    data<float>(logsum) + (b * H + h) * L + l, data<float>(dots) + l);
                            if (bias_sum.defined()) add_bias_gradient(bias_sum, ds, l, s);
                            add_product(sum_v, s, p.t(), gl);
                            add_product(sum_k, s, ds.t(), ql);
                            add_product(sum_q, 0, ds, ks);
                        }
                        kernels::scaled_copy(data<T>(grad_q) + ((b * H + h) * L + l) * K, data<float>(sum_q), rows * K,
                                             static_cast<float>(form.scale));
                    }
                    kernels::scaled_copy(data<T>(grad_k) + (b * H + h) * S * K, data<float>(sum_k), S * K,
                                         static_cast<float>(form.scale));
                    kernels::scaled_copy(data<T>(grad_v) + (b * H + h) * S * K, data<float>(sum_v), S * K, 1.0f);
                }
        });
        if (grad_bias.defined())
            grad_bias = grad_bias.to(static_cast<at::ScalarType>(ctx->saved_data["bias_type"].toInt()));
        return {grad_q, grad_k, grad_v, grad_bias, at::Tensor()};
    }

    /// Adds what a tile's logits give to a head's bias, (L or 1, S).
    static void add_bias_gradient(const at::Tensor& bias_sum, const at::Tensor& ds, std::int64_t l, std::int64_t s) {
        const at::Tensor columns = bias_sum.narrow(1, s, ds.size(1));
        if (bias_sum.size(0) == 1) {
            columns.add_(ds.to(at::kFloat).sum(0, true));
        } else {
            columns.narrow(0, l, ds.size(0)).add_(ds.to(at::kFloat));
        }
    }
};

/// Scores of all heads beyond this many bytes are not kept.
inline constexpr std::int64_t most_score_bytes = std::int64_t{16} << 20;

/// Large enough for products of matrices to run at their rate, small enough for the caches: bench/attention tries
/// others.
inline constexpr AttentionTiles usual_tiles{512, 1024};

}  // namespace strata::models::detail
