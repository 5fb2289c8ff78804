#pragma once
// strata/models/impl/wide_products.ipp - linear layers and batches of products, and their gradients.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include <strata/core/error.hpp>
#include <strata/core/simd.hpp>
#include <strata/models/detail/pair_walk.hpp>
#include <strata/models/detail/wide_product.hpp>
#include <strata/models/wide_products.hpp>

namespace strata::models {

namespace detail {

/// The sum of products of matrices, (M, N), by pairs where this CPU can, or by way of fp32.
template <std::size_t n>
void sum_of_products(const RoundedInto& to, std::int64_t M, std::int64_t N,
                     const std::array<WideTerm<WideMatrix, WideMatrix>, n>& sum) {
    if (!kernels::has_pair_products()) return for_wide_blocks(M, N, sum, to);
    std::array<kernels::PairTerm, n> terms;
    const auto operand = [](const WideMatrix& x) {
        return kernels::PairOperand{x.numbers, x.row_stride, x.column_stride};
    };
    for (std::size_t i = 0; i < n; ++i) terms[i] = {operand(sum[i].a), operand(sum[i].b), sum[i].terms};
    for_pair_blocks({to.y, to.stride, to.of_columns}, M, N, terms);
}

/// y = a b, y's rows dense.
inline void wide_product(const at::Tensor& y, const at::Tensor& a_, const at::Tensor& b_) {
    const at::Tensor a = dense_one_way(a_), b = dense_one_way(b_);
    const std::array sum{WideTerm<WideMatrix, WideMatrix>{WideMatrix{a}, WideMatrix{b}, a.size(1)}};
    sum_of_products(RoundedInto{y}, a.size(0), b.size(1), sum);
}
inline at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b) {
    at::Tensor y = at::empty({a.size(0), b.size(1)}, a.options());
    wide_product(y, a, b);
    return y;
}

/// Calls run(row, column, block) for fp32 blocks of x (R, n), rows dense.
template <class Run>
void for_widened(const at::Tensor& x, const Run& run) {
    constexpr std::int64_t most_rows = block_numbers / block_edge;
    const auto* from = static_cast<const bf16*>(x.data_ptr());
    for (std::int64_t row = 0; row < x.size(0); row += most_rows)
        for (std::int64_t column = 0; column < x.size(1); column += block_edge) {
            const at::Tensor block =
                wide_scratch(0, std::min(most_rows, x.size(0) - row), std::min(block_edge, x.size(1) - column));
            kernels::widen(block.data_ptr<float>(), from + row * x.stride(0) + column, block.size(0), block.size(1),
                           x.stride(0));
            run(row, column, block);
        }
}

/// Sums over the rows of x (R, n), in fp32, rounded once.
inline at::Tensor wide_row_sum(const at::Tensor& x) {
    const at::Tensor total = at::zeros({x.size(1)}, at::kFloat);
    for_widened(x.stride(1) == 1 ? x : x.contiguous(), [&](std::int64_t, std::int64_t column, const at::Tensor& block) {
        total.narrow(0, column, block.size(1)).add_(block.sum(0));
    });
    return total.to(x.scalar_type());
}

/// What backward needs of its inputs: each is kept for the gradient of the other.
inline at::Tensor if_needed(const at::Tensor& kept, const at::Tensor& other) {
    return other.requires_grad() ? kept : at::Tensor();
}

/// Throws Errc::bad_value for what the kernels, which take pointers, would read beyond or take for something else.
inline void check_linear(std::int64_t in, const at::Tensor& weight, const at::Tensor& bias) {
    const bool has_bias = bias.defined();
    if (weight.dim() == 2 && weight.size(1) == in &&
        (!has_bias || (bias.dim() == 1 && bias.size(0) == weight.size(0))) &&
        (!has_bias || bias.scalar_type() == weight.scalar_type()))
        return;
    throw Error{Errc::bad_value,
                "a product of rows of " + std::to_string(in) + " numbers got a weight of " + c10::str(weight.sizes()) +
                    (has_bias ? " and a bias of " + c10::str(bias.sizes()) + " in " + c10::toString(bias.scalar_type())
                              : std::string{}),
                "give a weight (out, " + std::to_string(in) + ") and a bias (out) of its type or none"};
}

/// libtorch 1.13 takes no undefined input: one without elements is none.
inline at::Tensor or_none(const at::Tensor& bias, const at::Tensor& like) {
    return bias.defined() ? bias : at::empty({0}, like.options());
}
inline const bf16* numbers_or_none(const at::Tensor& dense_bias) {
    return dense_bias.numel() > 0 ? static_cast<const bf16*>(dense_bias.data_ptr()) : nullptr;
}

/// oneDNN packs a weight for few rows faster than pairs are packed here; with more, packing is a smaller part.
inline bool libtorch_is_faster_forward(const at::Tensor& x_RI) {
    constexpr std::int64_t few_rows = 512;
    return !bf16_products_are_slow() && x_RI.size(0) < few_rows;
}

/// Throws Errc::bad_value for an operand that is no bf16 on the CPU, or has not as many rows as another.
inline void check_operand(const at::Tensor& x, std::int64_t rows) {
    if (x.scalar_type() == at::kBFloat16 && x.is_cpu() && x.size(0) == rows) return;
    throw Error{Errc::bad_value,
                "a product of " + std::to_string(rows) + " rows of bf16 got " + c10::str(x.sizes()) + " in " +
                    c10::toString(x.scalar_type()),
                "give operands of bf16 on the CPU, with as many rows each"};
}

inline bool are_bf16_on_cpu(const at::Tensor& x, const at::Tensor& weight) {
    return x.scalar_type() == at::kBFloat16 && weight.scalar_type() == at::kBFloat16 && x.is_cpu() && weight.is_cpu();
}

struct WideLinear : torch::autograd::Function<WideLinear> {
    using Context = torch::autograd::AutogradContext;
    using List = torch::autograd::variable_list;

    static at::Tensor forward(Context* ctx, const at::Tensor& x_, const at::Tensor& weight_, const at::Tensor& bias_) {
        const at::Tensor x = dense_one_way(x_), weight = dense_one_way(weight_), bias = bias_.contiguous();
        ctx->save_for_backward({if_needed(x_, weight_), if_needed(weight_, x_)});
        if (libtorch_is_faster_forward(x))
            return bias.numel() > 0 ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
        at::Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
        const std::array sum{WideTerm<WideMatrix, WideMatrix>{WideMatrix{x}, WideMatrix{weight.t()}, x.size(1)}};
        RoundedInto take{y};
        take.of_columns = numbers_or_none(bias);
        sum_of_products(take, x.size(0), weight.size(0), sum);
        return y;
    }
    static List backward(Context* ctx, const List& grads) {
        const List saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1], &grad = grads[0];
        at::Tensor grad_x, grad_weight, grad_bias;
        if (ctx->needs_input_grad(0)) grad_x = wide_product(grad, weight);
        if (ctx->needs_input_grad(1)) grad_weight = wide_product(grad.t(), x);
        if (ctx->needs_input_grad(2)) grad_bias = wide_row_sum(grad);
        return {grad_x, grad_weight, grad_bias};
    }
};

struct WideLinearOfTwo : torch::autograd::Function<WideLinearOfTwo> {
    using Context = torch::autograd::AutogradContext;
    using List = torch::autograd::variable_list;

    static at::Tensor forward(Context* ctx, const at::Tensor& a_, const at::Tensor& b_, const at::Tensor& weight_,
                              const at::Tensor& bias_) {
        const at::Tensor a = dense_one_way(a_), b = dense_one_way(b_), weight = dense_one_way(weight_),
                         bias = bias_.contiguous();
        const bool takes_weight = a_.requires_grad() || b_.requires_grad();
        ctx->save_for_backward({if_needed(a_, weight_), if_needed(b_, weight_), takes_weight ? weight_ : at::Tensor()});
        ctx->saved_data["cut"] = a_.size(1);
        const std::int64_t A = a.size(1), B = b.size(1);
        at::Tensor y = at::empty({a.size(0), weight.size(0)}, a.options());
        const std::array sum{
            WideTerm<WideMatrix, WideMatrix>{WideMatrix{a}, WideMatrix{weight.narrow(1, 0, A).t()}, A},
            WideTerm<WideMatrix, WideMatrix>{WideMatrix{b}, WideMatrix{weight.narrow(1, A, B).t()}, B}};
        RoundedInto take{y};
        take.of_columns = numbers_or_none(bias);
        sum_of_products(take, a.size(0), weight.size(0), sum);
        return y;
    }
    static List backward(Context* ctx, const List& grads) {
        const List saved = ctx->get_saved_variables();
        const at::Tensor &a = saved[0], &b = saved[1], &weight = saved[2], &grad = grads[0];
        const std::int64_t A = ctx->saved_data["cut"].toInt();
        at::Tensor grad_a, grad_b, grad_weight, grad_bias;
        if (ctx->needs_input_grad(0)) grad_a = wide_product(grad, weight.narrow(1, 0, A));
        if (ctx->needs_input_grad(1)) grad_b = wide_product(grad, weight.narrow(1, A, weight.size(1) - A));
        if (ctx->needs_input_grad(2)) {
            grad_weight = at::empty({grad.size(1), A + b.size(1)}, grad.options());
            wide_product(grad_weight.narrow(1, 0, A), grad.t(), a);
            wide_product(grad_weight.narrow(1, A, b.size(1)), grad.t(), b);
        }
        if (ctx->needs_input_grad(3)) grad_bias = wide_row_sum(grad);
        return {grad_a, grad_b, grad_weight, grad_bias};
    }
};

}  // namespace detail

STRATA_INLINE bool bf16_products_are_slow() {
#ifdef __x86_64__
    // What libtorch asks the CPU before it gives bf16 to oneDNN (aten/src/ATen/native/mkldnn/Utils.h).
    return !core::cpu_features().avx512 || !at::hasMKLDNN() || !at::globalContext().userEnabledMkldnn();
#else
    return false;  // not measured
#endif
}

STRATA_INLINE bool takes_wide_products(const at::Tensor& x, const at::Tensor& weight) {
    return detail::are_bf16_on_cpu(x, weight) && bf16_products_are_slow();
}

STRATA_INLINE bool takes_own_products(const at::Tensor& x_RI, const at::Tensor& weight_OI) {
    if (!detail::are_bf16_on_cpu(x_RI, weight_OI)) return false;
    if (bf16_products_are_slow()) return true;
    constexpr std::int64_t few = 16;  // of which a tile or a register would be half empty
    return kernels::has_pair_products() && x_RI.size(0) >= few && weight_OI.size(0) >= few && weight_OI.size(1) >= few;
}

STRATA_INLINE at::Tensor wide_linear(const at::Tensor& x_RI, const at::Tensor& weight_OI, const at::Tensor& bias_O) {
    detail::check_linear(x_RI.size(1), weight_OI, bias_O);
    detail::check_operand(x_RI, x_RI.size(0));
    detail::check_operand(weight_OI, weight_OI.size(0));
    return detail::WideLinear::apply(x_RI, weight_OI, detail::or_none(bias_O, x_RI));
}

STRATA_INLINE at::Tensor wide_linear_of_two(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight_OI,
                                            const at::Tensor& bias_O) {
    detail::check_linear(a.size(1) + b.size(1), weight_OI, bias_O);
    detail::check_operand(a, a.size(0));
    detail::check_operand(b, a.size(0));
    detail::check_operand(weight_OI, weight_OI.size(0));
    return detail::WideLinearOfTwo::apply(a, b, weight_OI, detail::or_none(bias_O, a));
}

STRATA_INLINE at::Tensor wide_bmm(const at::Tensor& a_BLK, const at::Tensor& b_BKS) {
    at::Tensor y = at::empty({a_BLK.size(0), a_BLK.size(1), b_BKS.size(2)}, a_BLK.options());
    for (std::int64_t i = 0; i < y.size(0); ++i) detail::wide_product(y[i], a_BLK[i], b_BKS[i]);
    return y;
}

}  // namespace strata::models
