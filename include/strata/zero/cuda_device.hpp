#pragma once
// strata/zero/cuda_device.hpp - CudaDevice: a GPU of NVIDIA's as the device that an engine trains on.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <strata/core/error.hpp>
#include <strata/offload/host_arena.hpp>
#include <strata/optim/device_kernels.hpp>
#include <strata/zero/compute_device.hpp>

namespace strata::zero {

namespace detail {

/// Throws Errc::device_failed with the CUDA runtime's own words.
inline void check_cuda(cudaError_t code, const char* call) {
    if (code == cudaSuccess) return;
    (void)cudaGetLastError();  // or the next launch would be taken for the one that failed
    throw Error{Errc::device_failed, std::string{call} + " failed: " + cudaGetErrorString(code),
                "look for an earlier error of this rank's GPU, and at dmesg and nvidia-smi"};
}

}  // namespace detail

/// A GPU behind CUDA and libtorch's allocator and streams. Copies are the same device.
///
/// Updates need kernels that nvcc compiled: strata::cuda_kernels has those of strata's own rules, and
/// optim/device_kernels.hpp says how to get those of another rule.
class CudaDevice {
public:
    static constexpr bool is_host = false;

    /// The GPU that the calling thread has chosen, as NcclComm does. Throws device_failed.
    CudaDevice() : CudaDevice{current_index()} {}
    explicit CudaDevice(int index)
        : device_{at::kCUDA, static_cast<at::DeviceIndex>(index)},
          own_stream_{c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_.index())} {}

    [[nodiscard]] at::Device device() const noexcept { return device_; }

    /// A mark behind what the calling thread's stream holds.
    class Fence {
    public:
        explicit Fence(const CudaDevice& device) {
            const c10::cuda::CUDAGuard guard{device.device_};
            cudaEvent_t made = nullptr;
            detail::check_cuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming | cudaEventBlockingSync),
                               "cudaEventCreateWithFlags");
            event_ = std::shared_ptr<CUevent_st>{made, [](cudaEvent_t event) { cudaEventDestroy(event); }};
            detail::check_cuda(cudaEventRecord(made, device.stream()), "cudaEventRecord");
        }
        void wait() const { detail::check_cuda(cudaEventSynchronize(event_.get()), "cudaEventSynchronize"); }

    private:
        std::shared_ptr<CUevent_st> event_;
    };
    [[nodiscard]] Fence fence() const { return Fence{*this}; }

    void finish() const {
        const c10::cuda::CUDAGuard guard{device_};  // the default stream is that of the current device
        detail::check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    }

    /// While it lives, the calling thread works on the stream of an engine's channel.
    class Operation {
    public:
        explicit Operation(const CudaDevice& device) : guard_{device.own_stream_} {}

    private:
        c10::cuda::CUDAStreamGuard guard_;
    };

    /// Pages that the GPU reads and writes by itself.
    [[nodiscard]] offload::Pinning pinning() const {
        return {.pin =
                    [](std::span<std::byte> bytes) {
                        const cudaError_t code = cudaHostRegister(bytes.data(), bytes.size(), cudaHostRegisterPortable);
                        if (code == cudaSuccess) return;
                        (void)cudaGetLastError();
                        throw Error{
                            Errc::not_enough_memory,
                            std::to_string(bytes.size()) +
                                " bytes of host memory cannot be pinned for the GPU: " + cudaGetErrorString(code),
                            "raise the limit on locked memory (ulimit -l, the container's memlock), or offload less"};
                    },
                .unpin =
                    [](std::span<std::byte> bytes) {
                        if (cudaHostUnregister(bytes.data()) != cudaSuccess) (void)cudaGetLastError();
                    }};
    }

    [[nodiscard]] std::uint64_t free_memory() const {
        const c10::cuda::CUDAGuard guard{device_};
        std::size_t free = 0;
        std::size_t all = 0;
        detail::check_cuda(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
        return free;
    }

    void release_cached() const { c10::cuda::CUDACachingAllocator::emptyCache(); }

    template <class Rule, class Gradient, class Kept, std::size_t states, class Copy>
    void update(const typename Rule::Scalars& scalars, const optim::GradientTransform& transform,
                std::span<const Gradient> gradient, std::span<Kept> weight,
                const std::array<std::span<Kept>, states>& state, std::span<Copy> copy,
                const optim::StochasticRounding& rounding) const {
        const c10::cuda::CUDAGuard guard{device_};
        if constexpr (std::same_as<Kept, bf16>) {
            optim::update_on_device<Rule, Gradient>(scalars, transform, gradient, weight, state, rounding, stream());
        } else {
            optim::update_on_device<Rule, Gradient, Copy>(scalars, transform, gradient, weight, state, copy, stream());
        }
    }

    template <class Gradient>
    void sum_of_squares(std::span<const Gradient> values, double* result) const {
        const c10::cuda::CUDAGuard guard{device_};
        const std::size_t numel = optim::squares_partials(static_cast<std::int64_t>(values.size()));
        const at::Tensor partials = scratch(numel * sizeof(double));
        optim::sum_of_squares_on_device<Gradient>(values, {static_cast<double*>(partials.data_ptr()), numel}, result,
                                                  stream());
    }

    template <class Rule, class Gradient, class Kept, std::size_t states>
    void advance(const typename Rule::Scalars& scalars, const optim::GradientTransform& transform,
                 std::span<const Gradient> gradient, std::span<const Kept> weight,
                 const std::array<std::span<Kept>, states>& state, std::span<const optim::Segment> segments,
                 std::span<optim::NormSquares> norms, const optim::StochasticRounding& rounding) const {
        const c10::cuda::CUDAGuard guard{device_};
        const std::size_t numel = optim::norm_partials(static_cast<std::int64_t>(weight.size()), segments.size());
        const at::Tensor partials = scratch(numel * sizeof(optim::NormSquares));
        optim::advance_on_device<Rule, Gradient, Kept>(scalars, transform, gradient, weight, state, segments,
                                                       {static_cast<optim::NormSquares*>(partials.data_ptr()), numel},
                                                       norms, rounding, stream());
    }

    template <class Rule, class Kept, std::size_t states, class Copy>
    void apply_direction(const typename Rule::Scalars& scalars, std::span<Kept> weight,
                         const std::array<std::span<Kept>, states>& state, std::span<const optim::Segment> segments,
                         std::span<const float> ratios, std::span<Copy> copy,
                         const optim::StochasticRounding& rounding) const {
        const c10::cuda::CUDAGuard guard{device_};
        if constexpr (std::same_as<Kept, bf16>) {
            optim::apply_direction_on_device<Rule>(scalars, weight, state, segments, ratios, rounding, stream());
        } else {
            optim::apply_direction_on_device<Rule, Copy>(scalars, weight, state, segments, ratios, copy, stream());
        }
    }

    template <class Kept>
    void update_average(double decay, std::span<const Kept> weight, std::span<float> average) const {
        const c10::cuda::CUDAGuard guard{device_};
        optim::update_average_on_device<Kept>(decay, weight, average, stream());
    }

private:
    [[nodiscard]] static int current_index() {
        int index = 0;
        detail::check_cuda(cudaGetDevice(&index), "cudaGetDevice");
        return index;
    }
    [[nodiscard]] cudaStream_t stream() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

    /// Memory that the allocator may give to the next work on this stream as soon as the tensor goes.
    [[nodiscard]] at::Tensor scratch(std::size_t bytes) const {
        return at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions{}.dtype(at::kByte).device(device_));
    }

    at::Device device_;
    c10::cuda::CUDAStream own_stream_;
};

static_assert(ComputeDevice<CudaDevice>);

}  // namespace strata::zero
