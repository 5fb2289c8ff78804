#pragma once
// bench/attention/by_hand.hpp - attention with all scores in memory, in the form that is fast without tiles.
//
// Products by libtorch, and between them the softmax of models/kernels.hpp in place: what attention() does where sequences
// are short.

#include <cmath>
#include <cstdint>

#include <torch/torch.h>

#include <strata/core/bf16.hpp>
#include <strata/models/kernels.hpp>

namespace by_hand {

struct Attention : torch::autograd::Function<Attention> {
    static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v) {
        const std::int64_t B = q.size(0), H = q.size(1), L = q.size(2), S = k.size(2), K = q.size(3);
        const at::Tensor qs = q.reshape({B * H, L, K}), ks = k.reshape({B * H, S, K}), vs = v.reshape({B * H, S, K});
        const at::Tensor p = at::bmm(qs, ks.transpose(1, 2));
        const auto run = [&]<class T>(T*) {
            strata::models::kernels::softmax(static_cast<T*>(p.data_ptr()), B * H * L, S, scale_of(K));
        };
        p.scalar_type() == at::kFloat ? run(static_cast<float*>(nullptr)) : run(static_cast<strata::bf16*>(nullptr));
        ctx->save_for_backward({qs, ks, vs, p});
        return at::bmm(p, vs).view({B, H, L, K}).transpose(1, 2).reshape({B, L, H * K});
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                   const torch::autograd::variable_list& grads) {
        const torch::autograd::variable_list saved = ctx->get_saved_variables();
        const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &p = saved[3];
        const std::int64_t B = grads[0].size(0), L = q.size(1), S = k.size(1), K = q.size(2), H = q.size(0) / B;
        const at::Tensor grad = grads[0].view({B, L, H, K}).transpose(1, 2).reshape({B * H, L, K});
        const at::Tensor grad_v = at::bmm(p.transpose(1, 2), grad), grad_s = at::bmm(grad, v.transpose(1, 2));
        const auto run = [&]<class T>(T*) {
            strata::models::kernels::softmax_backward(static_cast<T*>(grad_s.data_ptr()),
                                                      static_cast<const T*>(p.data_ptr()), B * H * L, S, scale_of(K));
        };
        p.scalar_type() == at::kFloat ? run(static_cast<float*>(nullptr)) : run(static_cast<strata::bf16*>(nullptr));
        const at::Tensor grad_q = at::bmm(grad_s, k), grad_k = at::bmm(grad_s.transpose(1, 2), q);
        return {grad_q.view({B, H, L, K}), grad_k.view({B, H, S, K}), grad_v.view({B, H, S, K})};
    }
    static float scale_of(std::int64_t K) { return 1.0f / std::sqrt(static_cast<float>(K)); }
};

}  // namespace by_hand
