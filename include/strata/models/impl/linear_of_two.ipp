#pragma once
// strata/models/impl/linear_of_two.ipp - a linear layer of two inputs side by side, by libtorch's products.

#include <cstdint>

#include <torch/torch.h>

namespace strata::models::detail {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// linear_of_two() of a (R, A) and b (R, B).
struct LinearOfTwo : Function<LinearOfTwo> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight,
                              const at::Tensor& bias) {
        ctx->save_for_backward({a, b, weight});
        const std::int64_t A = a.size(1), B = b.size(1);
        return at::addmm(bias, a, weight.narrow(1, 0, A).t()).add_(at::mm(b, weight.narrow(1, A, B).t()));
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &a = saved[0], &b = saved[1], &weight = saved[2], &grad = grads[0];
        const std::int64_t A = a.size(1), B = b.size(1);
        at::Tensor grad_a, grad_b, grad_weight, grad_bias;
        if (ctx->needs_input_grad(0)) grad_a = at::mm(grad, weight.narrow(1, 0, A));
        if (ctx->needs_input_grad(1)) grad_b = at::mm(grad, weight.narrow(1, A, B));
        if (ctx->needs_input_grad(2)) {
            grad_weight = at::empty_like(weight);
            at::Tensor of_a = grad_weight.narrow(1, 0, A), of_b = grad_weight.narrow(1, A, B);
            at::mm_out(of_a, grad.t(), a);
            at::mm_out(of_b, grad.t(), b);
        }
        if (ctx->needs_input_grad(3)) grad_bias = grad.sum(0);
        return {grad_a, grad_b, grad_weight, grad_bias};
    }
};

}  // namespace strata::models::detail
