#pragma once
// strata/zero/parts/gradient_view.hpp - GradientView: the reduced gradient of a step, parameter by parameter, before it is used.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>
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

    using Body = core::FunctionRef<void(const GradientPiece&)>;

    /// Calls `body` for every parameter that this rank's share has elements of, in order. Local. What a tier's disk meets is
    /// said by what is collective next.
    void for_each(Body body) const { walk(offload::Access::update, body); }

    /// The 2-norm of every parameter's mean gradient, in the order of layout(): pieces are added up in rank order, in double.
    /// Collective; the same bits on every rank.
    [[nodiscard]] std::vector<double> norms();

private:
    void walk(offload::Access access, Body body) const;

    const Buckets& buckets_;
    GradientReduction& gradients_;
    Exchange& exchange_;
    double to_mean_;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/gradient_view.ipp>
#endif
