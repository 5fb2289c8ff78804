#pragma once
// strata/adapters/impl/lokr.ipp - bodies of LoKr.

#include <algorithm>
#include <cmath>
#include <string>

#include <strata/adapters/lokr.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/wide_products.hpp>

namespace strata::adapters {

STRATA_INLINE std::pair<std::int64_t, std::int64_t> kronecker_factors(std::int64_t dimension, std::int64_t factor) {
    const std::int64_t most = factor > 0 ? factor : dimension;
    std::int64_t small = 1;
    for (std::int64_t n = 2; n * n <= dimension && n <= most; ++n) {
        if (dimension % n == 0) small = n;
    }
    return {small, dimension / small};
}

STRATA_INLINE LokrAdapter::LokrAdapter(const models::LayerShape& shape, const LokrOptions& options)
    : shape_{shape}, options_{options} {
    std::tie(a_, c_) = kronecker_factors(shape.out, options.factor);
    std::tie(b_, d_) = kronecker_factors(shape.in, options.factor);
    const std::int64_t r = options.rank;
    const std::int64_t k = shape.is_convolution() ? shape.kernel_height * shape.kernel_width : 1;
    const auto begun = [&](const char* name, at::IntArrayRef sizes) {
        at::Tensor tensor = register_parameter(name, at::empty(sizes));
        torch::nn::init::kaiming_uniform_(tensor, std::sqrt(5.0));
        return tensor;
    };
    // Where a product of rank r would be as large as the factor itself, the factor is whole: LyCORIS' rule.
    const auto is_low = [&](std::int64_t rows, std::int64_t columns) {
        return !options.full_matrix && static_cast<double>(r) < static_cast<double>(std::max(rows, columns)) / 2;
    };
    if (options.decompose_both && is_low(a_, b_)) {
        w1_a = begun("w1_a", {a_, r});
        w1_b = begun("w1_b", {r, b_});
    } else {
        w1 = begun("w1", {a_, b_});
    }
    if (is_low(c_, d_)) {
        w2_a = begun("w2_a", {c_, r});
        w2_b = register_parameter("w2_b", at::zeros({r, d_ * k}));
    } else {
        w2 = register_parameter("w2", shape.is_convolution()
                                          ? at::zeros({c_, d_, shape.kernel_height, shape.kernel_width})
                                          : at::zeros({c_, d_}));
    }
}

STRATA_INLINE double LokrAdapter::scale() const noexcept {
    if (w1.defined() && w2.defined()) return 1.0;
    return options_.alpha > 0 ? options_.alpha / static_cast<double>(options_.rank) : 1.0;
}

STRATA_INLINE at::Tensor LokrAdapter::first() const { return w1.defined() ? w1 : at::mm(w1_a, w1_b); }

STRATA_INLINE at::Tensor LokrAdapter::second() const {
    if (w2.defined()) return w2;
    const at::Tensor product = at::mm(w2_a, w2_b);
    return shape_.is_convolution() ? product.view({c_, d_, shape_.kernel_height, shape_.kernel_width}) : product;
}

namespace detail {

/// outer (a, b) times each of t (N, b, c): (N, a, c).
inline at::Tensor times(const at::Tensor& outer, const at::Tensor& t_Nbc) {
    if (models::takes_wide_products(outer, t_Nbc))
        return models::linear(t_Nbc.transpose(1, 2), outer, {}).transpose(1, 2);
    return at::matmul(outer, t_Nbc);
}

}  // namespace detail

STRATA_INLINE at::Tensor LokrAdapter::forward(const at::Tensor& x, const models::BaseLayer& base) {
    const at::Tensor plain = base.sum(x, base.base_weight(), base.base_bias());
    const at::Tensor outer = first().to(x.scalar_type()), inner = second().to(x.scalar_type());
    if (shape_.is_convolution()) {
        // (B, b d, h, w) -> (B b, d, h, w), convolved by w2, and then b to a at every position.
        const std::int64_t B = x.size(0);
        const at::Tensor t = base.sum(x.reshape({B * b_, d_, x.size(2), x.size(3)}), inner, {});
        const at::Tensor t_BbR = t.view({B, b_, c_ * t.size(2) * t.size(3)});
        return at::add(plain, detail::times(outer, t_BbR).reshape(plain.sizes()), scale());
    }
    const at::Tensor rows_Rbd = x.reshape({-1, b_, d_});
    const at::Tensor t_Rbc = models::linear(rows_Rbd, inner, {});
    return at::add(plain, detail::times(outer, t_Rbc).reshape(plain.sizes()), scale());
}

STRATA_INLINE at::Tensor LokrAdapter::merged(const at::Tensor& weight) const {
    const at::NoGradGuard no_grad;
    at::Tensor outer = first().to(at::kFloat);
    const at::Tensor inner = second().to(at::kFloat);
    if (inner.dim() == 4) outer = outer.unsqueeze(2).unsqueeze(3);
    return at::add(weight.to(at::kFloat), at::kron(outer, inner).view(weight.sizes()), scale());
}

}  // namespace strata::adapters

namespace strata {

STRATA_INLINE std::shared_ptr<models::LayerAdapter> Lokr::make(const models::LayerShape& layer,
                                                               const Options& options) {
    return std::make_shared<adapters::LokrAdapter>(layer, options);
}

}  // namespace strata
