#pragma once
// strata/models/impl/fused_ops.ipp - autograd functions over the kernels, and their composed forms.

#include <cmath>
#include <cstdint>
#include <vector>

#include <strata/models/few_rows.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/impl/few_rows.ipp>
#include <strata/models/impl/linear_of_two.ipp>
#include <strata/models/kernels.hpp>
#include <strata/models/wide_products.hpp>

namespace strata::models {

namespace detail {

inline constexpr float norm_eps = 1e-6f;

inline bool kernels_apply(const at::Tensor& x, std::int64_t width) {
    return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16) && width % 16 == 0;
}

/// Calls run(T{}) with T = float or strata::bf16.
template <class Run>
void by_type(const at::Tensor& x, const Run& run) {
    if (x.scalar_type() == at::kBFloat16) {
        run(bf16{});
    } else {
        run(float{});
    }
}

template <class T>
T* data(const at::Tensor& x) {
    return static_cast<T*>(x.data_ptr());
}

/// (B, D) whose rows are dense, though perhaps apart.
inline at::Tensor dense_rows(const at::Tensor& x) { return x.stride(1) == 1 ? x : x.contiguous(); }

template <class T>
kernels::Rows<T> rows(const at::Tensor& x) {
    return {data<T>(x), x.stride(0)};
}

inline at::Tensor floats(at::IntArrayRef shape) { return at::empty(shape, at::kFloat); }

struct ModulatedNorm : Function<ModulatedNorm> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_, const at::Tensor& scale_,
                              const at::Tensor& shift_) {
        const at::Tensor x = x_.contiguous();
        const at::Tensor scale = dense_rows(scale_);
        const at::Tensor shift = dense_rows(shift_);
        at::Tensor y = at::empty_like(x);
        at::Tensor statistics = floats({x.size(0), x.size(1), 2});
        by_type(x, [&]<class T>(T) {
            kernels::modulated_norm(data<T>(y), data<float>(statistics), data<T>(x), rows<T>(scale), rows<T>(shift),
                                    x.size(0), x.size(1), x.size(2), norm_eps);
        });
        ctx->save_for_backward({x, scale, statistics});
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor& x = saved[0];
        const at::Tensor& scale = saved[1];
        const at::Tensor grad_y = grads[0].contiguous();
        at::Tensor grad_x = at::empty_like(x);
        at::Tensor grad_scale = floats({x.size(0), x.size(2)});
        at::Tensor grad_shift = floats({x.size(0), x.size(2)});
        by_type(x, [&]<class T>(T) {
            kernels::modulated_norm_backward(data<T>(grad_x), data<float>(grad_scale), data<float>(grad_shift),
                                             data<T>(grad_y), data<T>(x), data<float>(saved[2]), rows<T>(scale),
                                             x.size(0), x.size(1), x.size(2));
        });
        return {grad_x, grad_scale.to(x.scalar_type()), grad_shift.to(x.scalar_type())};
    }
};

struct GatedAdd : Function<GatedAdd> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_, const at::Tensor& gate_,
                              const at::Tensor& h_) {
        const at::Tensor x = x_.contiguous();
        const at::Tensor h = h_.contiguous();
        const at::Tensor gate = dense_rows(gate_);
        at::Tensor y = at::empty_like(x);
        by_type(x, [&]<class T>(T) {
            kernels::gated_add(data<T>(y), data<T>(x), rows<T>(gate), data<T>(h), x.size(0), x.size(1), x.size(2));
        });
        ctx->save_for_backward({gate, h});
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor& gate = saved[0];
        const at::Tensor& h = saved[1];
        const at::Tensor grad_y = grads[0].contiguous();
        at::Tensor grad_h = at::empty_like(h);
        at::Tensor grad_gate = floats({h.size(0), h.size(2)});
        by_type(h, [&]<class T>(T) {
            kernels::gated_add_backward(data<T>(grad_h), data<float>(grad_gate), data<T>(grad_y), rows<T>(gate),
                                        data<T>(h), h.size(0), h.size(1), h.size(2));
        });
        return {grad_y, grad_gate.to(h.scalar_type()), grad_h};
    }
};

struct RmsNormRotate : Function<RmsNormRotate> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_, const at::Tensor& weight,
                              const at::Tensor& cosine, const at::Tensor& sine) {
        const at::Tensor x = x_.contiguous();
        const std::int64_t K = weight.size(0);
        const std::int64_t H = x.size(2) / K;
        at::Tensor y = at::empty({x.size(0), H, x.size(1), K}, x.options());
        by_type(x, [&]<class T>(T) {
            kernels::rms_norm_rotate(data<T>(y), data<T>(x), data<T>(weight), data<float>(cosine), data<float>(sine),
                                     x.size(0), x.size(1), H, K, norm_eps);
        });
        ctx->save_for_backward({x, weight, cosine, sine});
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor& x = saved[0];
        const at::Tensor& weight = saved[1];
        const at::Tensor grad_y = grads[0].contiguous();
        at::Tensor grad_x = at::empty_like(x);
        at::Tensor grad_weight = floats({weight.size(0)});
        by_type(x, [&]<class T>(T) {
            kernels::rms_norm_rotate_backward(data<T>(grad_x), data<float>(grad_weight), data<T>(grad_y), data<T>(x),
                                              data<T>(weight), data<float>(saved[2]), data<float>(saved[3]), x.size(0),
                                              x.size(1), grad_y.size(1), weight.size(0), norm_eps);
        });
        return {grad_x, grad_weight.to(x.scalar_type()), at::Tensor(), at::Tensor()};
    }
};

struct Gelu : Function<Gelu> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_) {
        const at::Tensor x = x_.contiguous();
        at::Tensor y = at::empty_like(x);
        by_type(x, [&]<class T>(T) { kernels::gelu(data<T>(y), data<T>(x), x.numel()); });
        ctx->save_for_backward({x});
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const at::Tensor x = ctx->get_saved_variables()[0];
        const at::Tensor grad_y = grads[0].contiguous();
        at::Tensor grad_x = at::empty_like(x);
        by_type(x,
                [&]<class T>(T) { kernels::gelu_backward(data<T>(grad_x), data<T>(grad_y), data<T>(x), x.numel()); });
        return {grad_x};
    }
};

/// libtorch 1.13 concatenates bf16 element by element; copying into slices runs at memory speed.
struct Concatenate : Function<Concatenate> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a, const at::Tensor& b, std::int64_t dim) {
        std::vector<std::int64_t> shape = a.sizes().vec();
        shape[static_cast<std::size_t>(dim)] += b.size(dim);
        at::Tensor y = at::empty(shape, a.options());
        y.narrow(dim, 0, a.size(dim)).copy_(a);
        y.narrow(dim, a.size(dim), b.size(dim)).copy_(b);
        ctx->saved_data["dim"] = dim;
        ctx->saved_data["cut"] = a.size(dim);
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const std::int64_t dim = ctx->saved_data["dim"].toInt();
        const std::int64_t cut = ctx->saved_data["cut"].toInt();
        return {grads[0].narrow(dim, 0, cut), grads[0].narrow(dim, cut, grads[0].size(dim) - cut), at::Tensor()};
    }
};

/// linear() of x (R, I), a few rows.
struct FewRowsLinear : Function<FewRowsLinear> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_, const at::Tensor& weight,
                              const at::Tensor& bias) {
        const at::Tensor x = x_.contiguous();
        at::Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
        by_type(x, [&]<class T>(T) {
            kernels::few_rows(data<T>(y), data<T>(x), data<T>(weight), data<T>(bias), x.size(0), x.size(1),
                              weight.size(0));
        });
        ctx->save_for_backward({x, weight});
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1], grad_y = grads[0].contiguous();
        at::Tensor grad_x, grad_weight, grad_bias;
        if (ctx->needs_input_grad(0)) {
            at::Tensor sums = floats(x.sizes());
            by_type(x, [&]<class T>(T) {
                kernels::few_rows_grad_x(data<float>(sums), data<T>(grad_y), data<T>(weight), x.size(0), x.size(1),
                                         weight.size(0));
            });
            grad_x = sums.to(x.scalar_type());
        }
        if (ctx->needs_input_grad(1)) {
            grad_weight = at::empty_like(weight);
            by_type(x, [&]<class T>(T) {
                kernels::few_rows_grad_weight(data<T>(grad_weight), data<T>(grad_y), data<T>(x), x.size(0), x.size(1),
                                              weight.size(0));
            });
        }
        if (ctx->needs_input_grad(2)) grad_bias = grad_y.sum(0);
        return {grad_x, grad_weight, grad_bias};
    }
};

/// Small weights are in the caches, and a product of matrices is as good.
inline bool few_rows_apply(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& bias) {
    return rows.size(0) >= 1 && rows.size(0) <= 8 && weight.numel() >= std::int64_t{1} << 20 &&
           kernels_apply(rows, rows.size(1)) && weight.is_cpu() && weight.is_contiguous() && bias.defined() &&
           bias.is_contiguous() && weight.scalar_type() == rows.scalar_type() &&
           bias.scalar_type() == rows.scalar_type();
}

/// The type that norms and softmax compute in: fp32, or fp64 for fp64 input.
inline at::ScalarType wide(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

inline at::Tensor swap_pairs(const at::Tensor& x) { return x.unflatten(-1, {-1, 2}).flip(-1).flatten(-2); }

}  // namespace detail

STRATA_INLINE at::Tensor modulated_norm(const at::Tensor& x_BLD, const at::Tensor& scale_BD,
                                        const at::Tensor& shift_BD) {
    if (detail::kernels_apply(x_BLD, x_BLD.size(2))) return detail::ModulatedNorm::apply(x_BLD, scale_BD, shift_BD);
    const at::Tensor n = at::layer_norm(x_BLD.to(detail::wide(x_BLD)), {x_BLD.size(2)}, {}, {}, detail::norm_eps);
    return (n * (1 + scale_BD.unsqueeze(1)) + shift_BD.unsqueeze(1)).to(x_BLD.scalar_type());
}

STRATA_INLINE at::Tensor gated_add(const at::Tensor& x_BLD, const at::Tensor& gate_BD, const at::Tensor& h_BLD) {
    if (detail::kernels_apply(x_BLD, x_BLD.size(2))) return detail::GatedAdd::apply(x_BLD, gate_BD, h_BLD);
    return x_BLD + gate_BD.unsqueeze(1) * h_BLD;
}

STRATA_INLINE at::Tensor rms_norm_rotate(const at::Tensor& x_BLD, const at::Tensor& weight_K,
                                         const at::Tensor& cosine_LK, const at::Tensor& sine_LK) {
    if (detail::kernels_apply(x_BLD, weight_K.size(0)))
        return detail::RmsNormRotate::apply(x_BLD, weight_K, cosine_LK, sine_LK);
    const at::Tensor x = x_BLD.unflatten(2, {-1, weight_K.size(0)}).transpose(1, 2).to(detail::wide(x_BLD));
    const at::Tensor n = x * at::rsqrt(x.square().mean(-1, true) + detail::norm_eps) * weight_K;
    return (n * cosine_LK + detail::swap_pairs(n) * sine_LK).to(x_BLD.scalar_type());
}

STRATA_INLINE at::Tensor gelu_tanh(const at::Tensor& x) {
    return detail::kernels_apply(x, 16) ? detail::Gelu::apply(x) : at::gelu(x, "tanh");
}

STRATA_INLINE at::Tensor concatenate(const at::Tensor& a, const at::Tensor& b, std::int64_t dim) {
    return detail::Concatenate::apply(a, b, dim);
}

STRATA_INLINE at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    std::vector<std::int64_t> shape = x.sizes().vec();
    const at::Tensor rows = x.reshape({-1, shape.back()});
    shape.back() = weight.size(0);
    if (detail::few_rows_apply(rows, weight, bias)) return detail::FewRowsLinear::apply(rows, weight, bias).view(shape);
    if (takes_own_products(rows, weight)) return wide_linear(rows, weight, bias).view(shape);
    return (bias.defined() ? at::addmm(bias, rows, weight.t()) : at::mm(rows, weight.t())).view(shape);
}

STRATA_INLINE at::Tensor linear_of_two(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight,
                                       const at::Tensor& bias) {
    std::vector<std::int64_t> shape = a.sizes().vec();
    shape.back() = weight.size(0);
    const at::Tensor rows_a = a.flatten(0, -2), rows_b = b.flatten(0, -2);
    if (takes_own_products(rows_a, weight) && takes_own_products(rows_b, weight))
        return wide_linear_of_two(rows_a, rows_b, weight, bias).view(shape);
    return detail::LinearOfTwo::apply(rows_a, rows_b, weight, bias).view(shape);
}

}  // namespace strata::models
