#pragma once
// strata/zero/device_kernels.hpp - has_kernels_v: whether a device has the kernels that a composition's updates call.

#include <array>
#include <concepts>
#include <span>
#include <type_traits>
#include <vector>

#include <strata/core/bf16.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/policy/precision.hpp>
#include <strata/zero/compute_device.hpp>

namespace strata::zero {

/// Over gradients of one type, weights and states in another, and rounded copies of weights in a third. What each does is
/// said at ComputeDevice.
template <class D, class Rule, class Gradient, class Kept, class Copy>
concept HasKernelsFor = requires(const D& device, const typename Rule::Scalars& scalars,
                                 const optim::GradientTransform& transform, std::span<const Gradient> gradient,
                                 std::span<Kept> weight, std::array<std::span<Kept>, optim::state_count_v<Rule>> state,
                                 std::span<Copy> copy, const optim::StochasticRounding& rounding, double* result,
                                 std::span<const Kept> kept, std::span<float> average) {
    device.template sum_of_squares<Gradient>(gradient, result);
    device.template update_average<Kept>(double{}, kept, average);
    requires optim::LayerwiseRule<Rule> || requires {
        device.template update<Rule>(scalars, transform, gradient, weight, state, copy, rounding);
    };
    requires optim::ElementwiseRule<Rule> ||
        requires(const std::vector<optim::Segment>& segments, std::span<optim::NormSquares> norms,
                 std::span<const float> ratios) {
        device.template advance<Rule, Gradient, Kept>(scalars, transform, gradient, weight, state, segments, norms,
                                                      rounding);
        device.template apply_direction<Rule, Kept>(scalars, weight, state, segments, ratios, copy, rounding);
    };
};

/// Whether a device has those of one number format. One whose memory is the host's needs none: the host's do.
template <ComputeDevice D, class Rule, class Format>
inline constexpr bool has_kernels_in_v = [] {
    using Element = typename Format::element;
    using Kept = typename Format::kept;
    using Copy = std::conditional_t<Format::has_master, Element, bf16>;
    // What several micro-batches and fp16 gradients are added up in is fp32.
    using Sum = std::conditional_t<std::same_as<Element, bf16>, bf16, float>;
    if constexpr (D::is_host) {
        return true;
    } else {
        return HasKernelsFor<D, Rule, float, Kept, Copy> && HasKernelsFor<D, Rule, Sum, Kept, Copy>;
    }
}();

/// Whether it has all of them.
///
///   Rule      the composition's update rule
///   Numerics  its precision policy
template <ComputeDevice D, class Rule, class Numerics>
inline constexpr bool has_kernels_v = [] {
    if constexpr (strata::detail::has_exceptions_v<Numerics>) {
        return has_kernels_in_v<D, Rule, Numerics> &&
               has_kernels_in_v<D, Rule, strata::detail::excepted_of_t<Numerics>>;
    } else {
        return has_kernels_in_v<D, Rule, Numerics>;
    }
}();

}  // namespace strata::zero
