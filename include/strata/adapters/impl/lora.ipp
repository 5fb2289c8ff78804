#pragma once
// strata/adapters/impl/lora.ipp - bodies of LoRA and DoRA.

#include <cmath>

#include <strata/adapters/lora.hpp>
#include <strata/models/convolution.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/wide_products.hpp>

namespace strata::adapters {

STRATA_INLINE LoraAdapter::LoraAdapter(const models::LayerShape& shape, const LoraOptions& options)
    : shape_{shape}, options_{options} {
    const std::int64_t r = options.rank;
    const bool convolves = shape.is_convolution();
    down = register_parameter("down", convolves ? at::empty({r, shape.in, shape.kernel_height, shape.kernel_width})
                                                : at::empty({r, shape.in}));
    up = register_parameter("up", convolves ? at::zeros({shape.out, r, 1, 1}) : at::zeros({shape.out, r}));
    if (options.use_dora) magnitude = register_parameter("magnitude", at::ones({shape.out}));
    if (options.start == LoraStart::gaussian)
        torch::nn::init::normal_(down, 0.0, 1.0 / static_cast<double>(r));
    else
        torch::nn::init::kaiming_uniform_(down, std::sqrt(5.0));
}

/// `to`, and behind it what the two matrices make of x.
STRATA_INLINE at::Tensor LoraAdapter::added(const at::Tensor& x, const models::BaseLayer& base,
                                            const at::Tensor& to) const {
    const at::Tensor in = options_.dropout > 0 && is_training() ? at::dropout(x, options_.dropout, true) : x;
    const at::Tensor hidden = base.sum(in, down.to(x.scalar_type()), {});
    const at::Tensor second = up.to(x.scalar_type());
    if (shape_.is_convolution()) return at::add(to, models::conv2d(hidden, second, {}, {}), options_.scale());
    if (models::takes_wide_products(hidden, second))
        return at::add(to, models::linear(hidden, second, {}), options_.scale());
    const at::Tensor rows = hidden.reshape({-1, hidden.size(-1)});
    return at::addmm(to.reshape({-1, to.size(-1)}), rows, second.t(), 1.0, options_.scale()).view(to.sizes());
}

STRATA_INLINE at::Tensor LoraAdapter::forward(const at::Tensor& x, const models::BaseLayer& base) {
    if (!magnitude.defined()) return added(x, base, base.sum(x, base.base_weight(), base.base_bias()));
    const at::Tensor factor_O = factor_of_rows(base.base_weight()).to(x.scalar_type());
    const at::Tensor plain = base.sum(x, base.base_weight(), {});
    std::vector<std::int64_t> per_output(static_cast<std::size_t>(plain.dim()), 1);
    per_output[shape_.is_convolution() ? 1 : per_output.size() - 1] = shape_.out;
    const at::Tensor scaled = added(x, base, plain) * factor_O.view(per_output);
    return base.base_bias().defined() ? scaled + base.base_bias().view(per_output) : scaled;
}

// |W + s B A|^2 of a row is |W|^2 + 2 s B (A W^T) + s^2 B (A A^T) B^T: two matrices of rank r, and nothing of W's size.
STRATA_INLINE at::Tensor LoraAdapter::factor_of_rows(const at::Tensor& weight) const {
    at::Tensor plain_O, changed_O;
    {
        const at::NoGradGuard no_grad;
        const at::Tensor W = weight.flatten(1);
        const at::Tensor A = down.flatten(1), B = up.flatten(1).to(at::kFloat);
        plain_O = at::linalg_vector_norm(W, 2, at::IntArrayRef{1}, false, at::kFloat);
        const at::Tensor crossed_Or = models::linear(A.to(W.scalar_type()), W, {}).t().to(at::kFloat);
        const at::Tensor of_down_rr = at::mm(A.to(at::kFloat), A.to(at::kFloat).t());
        const double s = options_.scale();
        const at::Tensor added_O = (B * (crossed_Or * (2 * s) + at::mm(B, of_down_rr) * (s * s))).sum(1);
        changed_O = (plain_O.square() + added_O).clamp_min(1e-24).sqrt();
    }
    return magnitude.to(at::kFloat) * (plain_O / changed_O);
}

STRATA_INLINE at::Tensor LoraAdapter::merged(const at::Tensor& weight) const {
    const at::NoGradGuard no_grad;
    const at::Tensor W = weight.to(at::kFloat).flatten(1);
    const at::Tensor V =
        at::addmm(W, up.flatten(1).to(at::kFloat), down.flatten(1).to(at::kFloat), 1.0, options_.scale());
    if (!magnitude.defined()) return V.view(weight.sizes());
    const at::Tensor factor_O = magnitude.to(at::kFloat) * W.norm(2, 1) / V.norm(2, 1).clamp_min(1e-12);
    return (V * factor_O.unsqueeze(1)).view(weight.sizes());
}

}  // namespace strata::adapters

namespace strata {

STRATA_INLINE std::shared_ptr<models::LayerAdapter> Lora::make(const models::LayerShape& layer,
                                                               const Options& options) {
    return std::make_shared<adapters::LoraAdapter>(layer, options);
}

}  // namespace strata
