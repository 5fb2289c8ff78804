#pragma once
// strata/optim/device_kernels.hpp - the updates on a GPU: the same rules, the same bits.
//
// Spans hold addresses of a GPU's memory unless said otherwise. Every function queues its work on `stream`, of the GPU
// that is current for the calling thread, and returns at once; nothing is allocated. Results have the bits of the CPU's
// functions of the same name; only a NaN may be another NaN.
//
// Definitions come from a .cu. strata's own has AdamW, Adam, Lion, Adagrad, Sgd and Lamb. For a rule of your own, whose
// functions over elements are STRATA_HOST_DEVICE, write one such file, and compile it with -std=c++20
// --expt-relaxed-constexpr -fmad=false, without --use_fast_math:
//
//   #include <my_rule.hpp>
//   #include <strata/optim/impl/device_kernels.cuh>
//   STRATA_UPDATE_ON_DEVICE(MyRule)            // or STRATA_LAYERWISE_UPDATE_ON_DEVICE(MyRule)

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>
#include <strata/optim/elements.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata::optim {

using DeviceStream = void*;  ///< a cudaStream_t

/// optim::update(); arguments as there. Local; throws Errc::device_failed when the GPU does not take the work.
template <ElementwiseRule Rule, GradientElement G, CopyElement C = bf16>
void update_on_device(const typename Rule::Scalars& scalars, const GradientTransform& transform,
                      std::span<const G> gradient, std::span<float> weight,
                      const std::array<std::span<float>, state_count_v<Rule>>& state, std::span<C> copy,
                      DeviceStream stream);

/// The same for weights and states in bf16, which are rounded by chance.
template <ElementwiseRule Rule, GradientElement G>
void update_on_device(const typename Rule::Scalars& scalars, const GradientTransform& transform,
                      std::span<const G> gradient, std::span<bf16> weight,
                      const std::array<std::span<bf16>, state_count_v<Rule>>& state, const StochasticRounding& rounding,
                      DeviceStream stream);

/// How many doubles sum_of_squares_on_device() wants as scratch for `numel` values.
constexpr std::size_t squares_partials(std::int64_t numel) noexcept {
    return static_cast<std::size_t>((numel + detail::chunk_numel - 1) / detail::chunk_numel);
}
static_assert(squares_partials(65536) == 1 && squares_partials(65537) == 2);

/// optim::sum_of_squares(). Local; throws like update_on_device().
///
///   partial  squares_partials(N) doubles of scratch, or more; free again when the work is done
///   result   one double
template <GradientElement G>
void sum_of_squares_on_device(std::span<const G> values, std::span<double> partial, double* result,
                              DeviceStream stream);

/// optim::update_average(); arguments as there. Local; throws like update_on_device().
template <KeptElement W>
void update_average_on_device(double decay, std::span<const W> weight, std::span<float> average, DeviceStream stream);

/// How many NormSquares advance_on_device() wants as scratch for segments that hold `numel` elements together.
constexpr std::size_t norm_partials(std::int64_t numel, std::size_t segments) noexcept {
    return static_cast<std::size_t>(numel / detail::chunk_numel) + 2 * segments;
}

/// optim::advance(), the first pass of a layerwise rule; arguments as there. Local; throws like update_on_device().
///
///   segments  in host memory; read before the function returns
///   partial   norm_partials() of scratch, or more; free again when the work is done
///   norms     one a parameter; segments add to theirs in their order, also those of calls before on the same stream
template <LayerwiseRule Rule, GradientElement G, KeptElement W>
void advance_on_device(const typename Rule::Scalars& scalars, const GradientTransform& transform,
                       std::span<const G> gradient, std::span<const W> weight,
                       const std::array<std::span<W>, state_count_v<Rule>>& state, std::span<const Segment> segments,
                       std::span<NormSquares> partial, std::span<NormSquares> norms, const StochasticRounding& rounding,
                       DeviceStream stream);

/// optim::apply_direction(), the second pass; arguments as there. Local; throws like update_on_device().
///
///   segments, ratios  in host memory; read before the function returns
template <LayerwiseRule Rule, CopyElement C = bf16>
void apply_direction_on_device(const typename Rule::Scalars& scalars, std::span<float> weight,
                               const std::array<std::span<float>, state_count_v<Rule>>& state,
                               std::span<const Segment> segments, std::span<const float> ratios, std::span<C> copy,
                               DeviceStream stream);

/// The same for weights and states in bf16; `rounding` must be that of the first pass.
template <LayerwiseRule Rule>
void apply_direction_on_device(const typename Rule::Scalars& scalars, std::span<bf16> weight,
                               const std::array<std::span<bf16>, state_count_v<Rule>>& state,
                               std::span<const Segment> segments, std::span<const float> ratios,
                               const StochasticRounding& rounding, DeviceStream stream);

namespace detail {

/// Throws Errc::device_failed in the words of the CUDA runtime.
[[noreturn]] void throw_launch_failed(std::string_view name, std::string_view description);

}  // namespace detail

}  // namespace strata::optim

#ifndef STRATA_COMPILED
#include <strata/optim/impl/device_kernels.ipp>
#endif
