#pragma once
// strata/optim/impl/device_kernels.cuh - definitions of optim/device_kernels.hpp, for a .cu that names its rules.
//
// Compile with -std=c++20 --expt-relaxed-constexpr -fmad=false: a fused multiply-add rounds once where the CPU's loops
// round twice, and the bits would differ.

#include <cstdint>
#include <span>

#include <cuda_runtime.h>

#pragma nv_diagnostic push
#pragma nv_diag_suppress 186  // a loop over the states of a rule that has none
#include <strata/optim/detail/device_bodies.hpp>
#include <strata/optim/detail/device_layerwise.hpp>
#include <strata/optim/detail/device_sums.hpp>
#include <strata/optim/device_kernels.hpp>
#pragma nv_diagnostic pop

namespace strata::optim {

namespace detail {

/// A body whose threads know nothing of each other.
template <class Body>
__global__ void __launch_bounds__(Body::threads) run_threads(const __grid_constant__ Body body) {
    body(static_cast<std::int64_t>(blockIdx.x), static_cast<std::int32_t>(threadIdx.x));
}

/// A body whose blocks go in steps.
template <class Body>
__global__ void __launch_bounds__(Body::threads) run_steps(const __grid_constant__ Body body) {
    __shared__ typename Body::Shared shared;
    const ChunkPlace chunk = body.fill.chunk(static_cast<std::int64_t>(blockIdx.x));
    const std::int64_t steps = Body::steps(chunk);
    for (std::int64_t t = 0; t < steps; ++t) {
        body.step(chunk, t, static_cast<std::int32_t>(threadIdx.x), shared);
        __syncthreads();
    }
}

/// Queues a body's grid on a stream.
struct Launch {
    DeviceStream stream;

    template <class Body>
    void operator()(const Body& body, std::int64_t blocks) const {
        static_assert(sizeof(Body) <= 4096, "older drivers take no longer arguments");
        void (*kernel)(Body);
        if constexpr (requires { typename Body::Shared; }) {
            kernel = run_steps<Body>;
        } else {
            kernel = run_threads<Body>;
        }
        cudaLaunchConfig_t config{};
        config.gridDim = dim3{static_cast<unsigned>(blocks)};
        config.blockDim = dim3{static_cast<unsigned>(Body::threads)};
        config.stream = static_cast<cudaStream_t>(stream);
        const cudaError_t status = cudaLaunchKernelEx(&config, kernel, body);
        if (status == cudaSuccess) return;
        static_cast<void>(cudaGetLastError());  // it is told here; the runtime's next call is not to blame
        throw_launch_failed(cudaGetErrorName(status), cudaGetErrorString(status));
    }
};

}  // namespace detail

template <ElementwiseRule Rule, GradientElement G, CopyElement C>
void update_on_device(const typename Rule::Scalars& scalars, const GradientTransform& transform,
                      std::span<const G> gradient, std::span<float> weight,
                      const std::array<std::span<float>, state_count_v<Rule>>& state, std::span<C> copy,
                      DeviceStream stream) {
    if (copy.empty()) {
        detail::launch_update<Rule, false>(scalars, transform, gradient, weight, state, std::span<bf16>{}, {},
                                           detail::Launch{stream});
    } else {
        detail::launch_update<Rule, true>(scalars, transform, gradient, weight, state, copy, {},
                                          detail::Launch{stream});
    }
}

template <ElementwiseRule Rule, GradientElement G>
void update_on_device(const typename Rule::Scalars& scalars, const GradientTransform& transform,
                      std::span<const G> gradient, std::span<bf16> weight,
                      const std::array<std::span<bf16>, state_count_v<Rule>>& state, const StochasticRounding& rounding,
                      DeviceStream stream) {
    detail::launch_update<Rule, false>(scalars, transform, gradient, weight, state, std::span<bf16>{}, rounding,
                                       detail::Launch{stream});
}

template <GradientElement G>
void sum_of_squares_on_device(std::span<const G> values, std::span<double> partial, double* result,
                              DeviceStream stream) {
    detail::launch_sum_of_squares(values, partial, result, detail::Launch{stream});
}

template <KeptElement W>
void update_average_on_device(double decay, std::span<const W> weight, std::span<float> average, DeviceStream stream) {
    detail::launch_update_average(decay, weight, average, detail::Launch{stream});
}

template <LayerwiseRule Rule, GradientElement G, KeptElement W>
void advance_on_device(const typename Rule::Scalars& scalars, const GradientTransform& transform,
                       std::span<const G> gradient, std::span<const W> weight,
                       const std::array<std::span<W>, state_count_v<Rule>>& state, std::span<const Segment> segments,
                       std::span<NormSquares> partial, std::span<NormSquares> norms, const StochasticRounding& rounding,
                       DeviceStream stream) {
    detail::launch_advance<Rule>(scalars, transform, gradient, weight, state, segments, partial, norms, rounding,
                                 detail::Launch{stream});
}

template <LayerwiseRule Rule, CopyElement C>
void apply_direction_on_device(const typename Rule::Scalars& scalars, std::span<float> weight,
                               const std::array<std::span<float>, state_count_v<Rule>>& state,
                               std::span<const Segment> segments, std::span<const float> ratios, std::span<C> copy,
                               DeviceStream stream) {
    if (copy.empty()) {
        detail::launch_apply_direction<Rule, false>(scalars, weight, state, segments, ratios, std::span<bf16>{}, {},
                                                    detail::Launch{stream});
    } else {
        detail::launch_apply_direction<Rule, true>(scalars, weight, state, segments, ratios, copy, {},
                                                   detail::Launch{stream});
    }
}

template <LayerwiseRule Rule>
void apply_direction_on_device(const typename Rule::Scalars& scalars, std::span<bf16> weight,
                               const std::array<std::span<bf16>, state_count_v<Rule>>& state,
                               std::span<const Segment> segments, std::span<const float> ratios,
                               const StochasticRounding& rounding, DeviceStream stream) {
    detail::launch_apply_direction<Rule, false>(scalars, weight, state, segments, ratios, std::span<bf16>{}, rounding,
                                                detail::Launch{stream});
}

}  // namespace strata::optim

// What an engine asks for: gradients in fp32 or bf16 (fp16 ones are summed in fp32); fp32 weights without a copy or
// with one in bf16 or fp16; bf16 weights.

#define STRATA_DEVICE_STATE(Rule, W) const std::array<std::span<W>, ::strata::optim::state_count_v<Rule>>&

#define STRATA_DEVICE_UPDATE(Rule, G, C)                                                                       \
    template void ::strata::optim::update_on_device<Rule, G, C>(                                               \
        const Rule::Scalars&, const ::strata::optim::GradientTransform&, std::span<const G>, std::span<float>, \
        STRATA_DEVICE_STATE(Rule, float), std::span<C>, ::strata::optim::DeviceStream);
#define STRATA_DEVICE_PURE_UPDATE(Rule, G)                                                   \
    template void ::strata::optim::update_on_device<Rule, G>(                                \
        const Rule::Scalars&, const ::strata::optim::GradientTransform&, std::span<const G>, \
        std::span<::strata::bf16>, STRATA_DEVICE_STATE(Rule, ::strata::bf16),                \
        const ::strata::optim::StochasticRounding&, ::strata::optim::DeviceStream);

/// Defines the functions of optim/device_kernels.hpp for an ElementwiseRule. Outside of all namespaces.
#define STRATA_UPDATE_ON_DEVICE(Rule)                          \
    STRATA_DEVICE_UPDATE(Rule, float, ::strata::bf16)          \
    STRATA_DEVICE_UPDATE(Rule, float, ::strata::fp16)          \
    STRATA_DEVICE_UPDATE(Rule, ::strata::bf16, ::strata::bf16) \
    STRATA_DEVICE_PURE_UPDATE(Rule, float)                     \
    STRATA_DEVICE_PURE_UPDATE(Rule, ::strata::bf16)

#define STRATA_DEVICE_ADVANCE(Rule, G, W)                                                                        \
    template void ::strata::optim::advance_on_device<Rule, G, W>(                                                \
        const Rule::Scalars&, const ::strata::optim::GradientTransform&, std::span<const G>, std::span<const W>, \
        STRATA_DEVICE_STATE(Rule, W), std::span<const ::strata::optim::Segment>,                                 \
        std::span<::strata::optim::NormSquares>, std::span<::strata::optim::NormSquares>,                        \
        const ::strata::optim::StochasticRounding&, ::strata::optim::DeviceStream);
#define STRATA_DEVICE_APPLY(Rule, C)                                                     \
    template void ::strata::optim::apply_direction_on_device<Rule, C>(                   \
        const Rule::Scalars&, std::span<float>, STRATA_DEVICE_STATE(Rule, float),        \
        std::span<const ::strata::optim::Segment>, std::span<const float>, std::span<C>, \
        ::strata::optim::DeviceStream);

/// The same for a LayerwiseRule.
#define STRATA_LAYERWISE_UPDATE_ON_DEVICE(Rule)                                                                        \
    STRATA_DEVICE_ADVANCE(Rule, float, float)                                                                          \
    STRATA_DEVICE_ADVANCE(Rule, ::strata::bf16, float)                                                                 \
    STRATA_DEVICE_ADVANCE(Rule, float, ::strata::bf16)                                                                 \
    STRATA_DEVICE_ADVANCE(Rule, ::strata::bf16, ::strata::bf16)                                                        \
    STRATA_DEVICE_APPLY(Rule, ::strata::bf16)                                                                          \
    STRATA_DEVICE_APPLY(Rule, ::strata::fp16)                                                                          \
    template void ::strata::optim::apply_direction_on_device<Rule>(                                                    \
        const Rule::Scalars&, std::span<::strata::bf16>, STRATA_DEVICE_STATE(Rule, ::strata::bf16),                    \
        std::span<const ::strata::optim::Segment>, std::span<const float>, const ::strata::optim::StochasticRounding&, \
        ::strata::optim::DeviceStream);
