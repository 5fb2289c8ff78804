#pragma once
// strata/zero/impl/gradient_view.ipp - pieces of parameters in the sums of buckets.

#include <algorithm>
#include <cmath>
#include <span>

#include <strata/zero/parts/gradient_view.hpp>

namespace strata::zero {

STRATA_INLINE std::vector<double> GradientView::norms() {
    std::vector<double> squares(buckets_.parameters().size());
    walk(offload::Access::read, [&](const GradientPiece& piece) {
        squares[piece.index] = piece.sum.to(at::kDouble).square().sum().item().toDouble();
    });
    gradients_.tell_failure();
    std::vector<double> all(squares.size() * static_cast<std::size_t>(exchange_.world()));
    exchange_.all_gather_bytes(std::as_bytes(std::span{squares}), std::as_writable_bytes(std::span{all}));
    std::fill(squares.begin(), squares.end(), 0.0);
    for (std::size_t i = 0; i < all.size(); ++i) squares[i % squares.size()] += all[i];
    for (double& value : squares) value = std::sqrt(value) * to_mean_;
    return squares;
}

STRATA_INLINE void GradientView::walk(offload::Access access, Body body) const {
    gradients_.for_each_sum(access, [&](std::size_t b, const at::Tensor& sum_S) {
        const Bucket& bucket = buckets_[b].bucket;
        const ElementRun own = buckets_.own(b);
        for (std::size_t i = bucket.first_parameter; i < bucket.first_parameter + bucket.parameter_count; ++i) {
            const ParameterInfo& info = buckets_.layout()[i];
            const std::int64_t from = std::max(own.begin, info.begin);
            const std::int64_t end = std::min(own.begin + own.numel, info.begin + buckets_.parameter(i).tensor.numel());
            if (from >= end) continue;
            body(GradientPiece{info, i, from - info.begin, sum_S.narrow(0, from - own.begin, end - from), to_mean_});
        }
    });
}

}  // namespace strata::zero
