#pragma once
// strata/models/impl/unet_ops.ipp - autograd functions over the kernels, and their composed forms.

#include <cstdint>
#include <vector>

#include <strata/models/impl/fused_ops.ipp>
#include <strata/models/impl/unet_kernels.ipp>
#include <strata/models/unet_kernels.hpp>
#include <strata/models/unet_ops.hpp>

namespace strata::models {

namespace detail {

struct GroupNormCall : Function<GroupNormCall> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_, const at::Tensor& weight_,
                              const at::Tensor& bias_, std::int64_t groups, double eps, bool with_silu) {
        const at::Tensor x = x_.contiguous(), weight = weight_.contiguous(), bias = bias_.contiguous();
        const kernels::GroupNormShape shape = shape_of(x, groups, eps, with_silu);
        at::Tensor y = at::empty_like(x), statistics = floats({shape.B, shape.G, 2});
        by_type(x, [&]<class T>(T) {
            kernels::group_norm(data<T>(y), data<float>(statistics), data<T>(x), data<T>(weight), data<T>(bias), shape);
        });
        ctx->save_for_backward({x, weight, bias, statistics});
        ctx->saved_data["groups"] = groups;
        ctx->saved_data["eps"] = eps;
        ctx->saved_data["with_silu"] = with_silu;
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], grad_y = grads[0].contiguous();
        const kernels::GroupNormShape shape =
            shape_of(x, ctx->saved_data["groups"].toInt(), ctx->saved_data["eps"].toDouble(),
                     ctx->saved_data["with_silu"].toBool());
        at::Tensor grad_x = at::empty_like(x), grad_weight = floats({shape.C}), grad_bias = floats({shape.C});
        by_type(x, [&]<class T>(T) {
            kernels::group_norm_backward(data<T>(grad_x), data<float>(grad_weight), data<float>(grad_bias),
                                         data<T>(grad_y), data<T>(x), data<float>(saved[3]), data<T>(weight),
                                         data<T>(bias), shape);
        });
        const at::ScalarType type = x.scalar_type();
        return {grad_x, grad_weight.to(type), grad_bias.to(type), at::Tensor(), at::Tensor(), at::Tensor()};
    }
    static kernels::GroupNormShape shape_of(const at::Tensor& x, std::int64_t groups, double eps, bool with_silu) {
        return {x.size(0), x.size(1), x.numel() / (x.size(0) * x.size(1)), groups, static_cast<float>(eps), with_silu};
    }
};

struct LayerNormCall : Function<LayerNormCall> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_, const at::Tensor& weight_,
                              const at::Tensor& bias_, double eps) {
        const at::Tensor x = x_.contiguous(), weight = weight_.contiguous(), bias = bias_.contiguous();
        const std::int64_t D = x.size(-1), M = x.numel() / D;
        at::Tensor y = at::empty_like(x), statistics = floats({M, 2});
        by_type(x, [&]<class T>(T) {
            kernels::layer_norm(data<T>(y), data<float>(statistics), data<T>(x), data<T>(weight), data<T>(bias), M, D,
                                static_cast<float>(eps));
        });
        ctx->save_for_backward({x, weight, statistics});
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const variable_list saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1], grad_y = grads[0].contiguous();
        const std::int64_t D = x.size(-1), M = x.numel() / D;
        at::Tensor grad_x = at::empty_like(x), grad_weight = floats({D}), grad_bias = floats({D});
        by_type(x, [&]<class T>(T) {
            kernels::layer_norm_backward(data<T>(grad_x), data<float>(grad_weight), data<float>(grad_bias),
                                         data<T>(grad_y), data<T>(x), data<float>(saved[2]), data<T>(weight), M, D);
        });
        return {grad_x, grad_weight.to(x.scalar_type()), grad_bias.to(x.scalar_type()), at::Tensor()};
    }
};

struct Geglu : Function<Geglu> {
    static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_) {
        const at::Tensor x = x_.contiguous();
        std::vector<std::int64_t> shape = x.sizes().vec();
        shape.back() /= 2;
        at::Tensor y = at::empty(shape, x.options());
        by_type(x, [&]<class T>(T) { kernels::geglu(data<T>(y), data<T>(x), y.numel() / y.size(-1), y.size(-1)); });
        ctx->save_for_backward({x});
        return y;
    }
    static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
        const at::Tensor x = ctx->get_saved_variables()[0], grad_y = grads[0].contiguous();
        at::Tensor grad_x = at::empty_like(x);
        by_type(x, [&]<class T>(T) {
            kernels::geglu_backward(data<T>(grad_x), data<T>(grad_y), data<T>(x), grad_y.numel() / grad_y.size(-1),
                                    grad_y.size(-1));
        });
        return {grad_x};
    }
};

/// Whether a norm's kernels take x and its parameters, which may be of another type than x.
inline bool norm_kernels_apply(const at::Tensor& x, const at::Tensor& weight, std::int64_t run) {
    return x.numel() > 0 && kernels_apply(x, run) && weight.scalar_type() == x.scalar_type() && weight.is_cpu();
}

}  // namespace detail

STRATA_INLINE at::Tensor group_norm(const at::Tensor& x, std::int64_t groups, const at::Tensor& weight_C,
                                    const at::Tensor& bias_C, double eps, bool with_silu) {
    const std::int64_t channels = x.size(0) * x.size(1);
    if (channels > 0 && detail::norm_kernels_apply(x, weight_C, x.numel() / channels))
        return detail::GroupNormCall::apply(x, weight_C, bias_C, groups, eps, with_silu);
    const at::ScalarType wide = detail::wide(x);
    const at::Tensor y =
        at::group_norm(x.to(wide), groups, weight_C.to(wide), bias_C.to(wide), eps).to(x.scalar_type());
    return with_silu ? at::silu(y) : y;
}

STRATA_INLINE at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight_D, const at::Tensor& bias_D,
                                    double eps) {
    if (detail::norm_kernels_apply(x, weight_D, x.size(-1)))
        return detail::LayerNormCall::apply(x, weight_D, bias_D, eps);
    const at::ScalarType wide = detail::wide(x);
    return at::layer_norm(x.to(wide), weight_D.sizes(), weight_D.to(wide), bias_D.to(wide), eps).to(x.scalar_type());
}

STRATA_INLINE at::Tensor geglu(const at::Tensor& x) {
    if (x.numel() > 0 && detail::kernels_apply(x, x.size(-1) / 2) && x.size(-1) % 2 == 0)
        return detail::Geglu::apply(x);
    const std::vector<at::Tensor> halves = x.chunk(2, -1);
    return halves[0] * at::gelu(halves[1]);
}

}  // namespace strata::models
