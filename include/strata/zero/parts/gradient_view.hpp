#pragma once
// strata/zero/parts/gradient_view.hpp - GradientView: the reduced gradient of a step, parameter by parameter, before it is used.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/offload/window_pipeline.hpp>
#include <strata/zero/layout.hpp>
#include <strata/zero/parts/buckets.hpp>
#include <strata/zero/parts/exchange.hpp>
#include <strata/zero/parts/gradient_reduction.hpp>
#include <strata/zero/state.hpp>

namespace strata::zero {

/// The elements of one parameter's gradient that are in this rank's share.
struct GradientPiece {
    const ParameterInfo& parameter;
    std::size_t index = 0;   ///< of the parameter in layout()
    std::int64_t begin = 0;  ///< the piece's first element, in the parameter
    at::Tensor
        sum;  ///< (numel) over ranks and micro-batches, on the device or, where a tier has it, in the tier's memory;
              ///< what is written to it is used
    double to_mean = 1.0;  ///< sum times this is the mean gradient, without loss scale
};

/// Looks at gradients between the last backward pass of a step and the step.
class GradientView {
public:
    /// All of it outlives this object.
    ///
    ///   to_mean  of GradientPiece
    GradientView(const Buckets& buckets, GradientReduction& gradients, Exchange& exchange, double to_mean)
        : buckets_{buckets}, gradients_{gradients}, exchange_{exchange}, to_mean_{to_mean} {}

    /// Calls body(const GradientPiece&) for every parameter that this rank's share has elements of, in order. Local. What a
    /// tier's disk meets is said by what is collective next.
    template <class Body>
    void for_each(Body&& body) const {
        walk(offload::Access::update, body);
    }

    /// The 2-norm of every parameter's mean gradient, in the order of layout(): pieces are added up in rank order, in double.
    /// Collective; the same bits on every rank.
    [[nodiscard]] std::vector<double> norms() {
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

private:
    template <class Body>
    void walk(offload::Access access, Body&& body) const {
        gradients_.for_each_sum(access, [&](std::size_t b, const at::Tensor& sum_S) {
            const Bucket& bucket = buckets_[b].bucket;
            const ElementRun own = buckets_.own(b);
            for (std::size_t i = bucket.first_parameter; i < bucket.first_parameter + bucket.parameter_count; ++i) {
                const ParameterInfo& info = buckets_.layout()[i];
                const std::int64_t from = std::max(own.begin, info.begin);
                const std::int64_t end =
                    std::min(own.begin + own.numel, info.begin + buckets_.parameter(i).tensor.numel());
                if (from >= end) continue;
                body(
                    GradientPiece{info, i, from - info.begin, sum_S.narrow(0, from - own.begin, end - from), to_mean_});
            }
        });
    }

    const Buckets& buckets_;
    GradientReduction& gradients_;
    Exchange& exchange_;
    double to_mean_;
};

}  // namespace strata::zero
