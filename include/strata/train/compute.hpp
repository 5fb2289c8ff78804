#pragma once
// strata/train/compute.hpp - ComputeOn: the device and the communicator that a trainer's engine is made with.

#include <concepts>
#include <type_traits>

#include <memory>

#include <ATen/core/Tensor.h>

#include <strata/comm/communicator.hpp>
#include <strata/comm/default_comm.hpp>
#include <strata/policy/compute.hpp>
#include <strata/policy/ranks.hpp>
#include <strata/zero/buffers.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/device_kernels.hpp>
#include <strata/zero/tensors_in.hpp>

#ifdef STRATA_WITH_CUDA
#include <strata/comm/nccl_comm.hpp>
#include <strata/zero/cuda_device.hpp>
#endif

namespace strata {
namespace train {

/// The tensors of a batch go to a device, as far as zero::for_each_tensor() finds them.
template <class Batch>
void move_batch(Batch& batch, at::Device device) {
    if constexpr (zero::holds_tensors_v<Batch>) {
        zero::for_each_tensor(batch, [device](at::Tensor& tensor) { tensor = tensor.to(device); });
    }
}

/// A model whose buffers are where it computes, with the values of rank 0; its parameters are the engine's to take. Collective.
/// Throws what zero::take_buffers() throws.
template <class Model, class AnyCompute>
[[nodiscard]] std::shared_ptr<Model> with_buffers_taken(std::shared_ptr<Model> model, AnyCompute& compute) {
    zero::take_buffers(compute.comm(), zero::buffers_of(*model), compute.device().device());
    return model;
}

/// What a Trainer is made for: an engine's device and communicator. On a device of one's own, that device and the
/// session's ranks: an engine exchanges copies in host memory where the device's memory is not the host's.
///
///   Named     what Compute<Named> names; here a zero::ComputeDevice
///   HostComm  the session's communicator
template <class Named, comm::Communicator HostComm>
class ComputeOn {
public:
    using Ranks = HostComm;
    using Comm = HostComm;
    using Device = Named;

    explicit ComputeOn(HostComm& ranks) : ranks_{ranks} {}
    [[nodiscard]] Comm& comm() noexcept { return ranks_; }
    [[nodiscard]] Device device() const { return {}; }

private:
    HostComm& ranks_;
};

/// The CPU and the session's ranks.
template <comm::Communicator HostComm>
class ComputeOn<Host, HostComm> : public ComputeOn<zero::CpuDevice, HostComm> {
public:
    using ComputeOn<zero::CpuDevice, HostComm>::ComputeOn;
};

#ifdef STRATA_WITH_CUDA

/// This rank's GPU, and NCCL between them.
template <comm::Communicator HostComm>
class ComputeOn<Cuda, HostComm> {
public:
    using Ranks = HostComm;
    using Comm = comm::NcclComm<HostComm>;
    using Device = zero::CudaDevice;

    /// Collective. Throws what NcclComm throws.
    explicit ComputeOn(HostComm& ranks) : comm_{ranks}, device_{comm_.device()} {}
    [[nodiscard]] Comm& comm() noexcept { return comm_; }
    [[nodiscard]] Device device() const { return device_; }

private:
    Comm comm_;
    Device device_;
};

#endif

namespace detail {

#ifdef STRATA_WITH_CUDA
inline constexpr bool has_cuda = true;
#else
inline constexpr bool has_cuda = false;
#endif

template <class Named>
struct DeviceOf {
    using type = Named;
};
template <>
struct DeviceOf<DeviceOfTheBuild> {
    using type = std::conditional_t<has_cuda, Cuda, Host>;
};

}  // namespace detail

/// What a composition's Compute<...> and Ranks<...> stand for in this build.
template <class Setup>
using compute_of_t = ComputeOn<typename detail::DeviceOf<typename Setup::compute::device>::type,
                               comm::comm_of_t<typename Setup::ranks::comm>>;

}  // namespace train

namespace rule {

///   Named  what Ranks<Named> names; MpiComm is only declared in a build without MPI
template <class Named>
struct RanksAreACommunicator {
    static constexpr bool holds = [] {
        using Comm = comm::comm_of_t<Named>;
        if constexpr (comm::Communicator<Comm>) return !comm::takes_device_memory_v<Comm>;
        return false;
    }();
    struct Report {
        static_assert(
            holds,
            "[ST0131] Ranks<Comm> names a type that is no communicator for host memory in this build. Fix: configure "
            "with -DSTRATA_WITH_MPI=ON for Ranks<comm::MpiComm>; include the header of your own communicator, and "
            "give it what strata::comm::Communicator asks for; between GPUs type Compute<Cuda> beside it.");
    };
};

///   Named  what Compute<Named> names
template <class Named>
struct DeviceIsInThisBuild {
    static constexpr bool holds = [] {
        if constexpr (std::same_as<Named, Host> || std::same_as<Named, DeviceOfTheBuild>) return true;
        if constexpr (std::same_as<Named, Cuda>) return train::detail::has_cuda;
        if constexpr (requires { requires zero::ComputeDevice<Named>; }) return std::default_initializable<Named>;
        return false;
    }();
    struct Report {
        static_assert(
            holds,
            "[ST0132] Compute<Device> names a device that this build cannot compute on. Fix: type Compute<Host>; "
            "configure with -DSTRATA_WITH_CUDA=ON for Compute<Cuda>; give a device of your own what "
            "strata::zero::ComputeDevice asks for and a constructor without arguments, and include its header "
            "(docs/write-a-device.md).");
    };
};

///   Named  what Compute<Named> names; one of strata's own has all of them
///   Setup  the composition
template <class Named, class Setup>
struct DeviceHasKernels {
    static constexpr bool holds = [] {
        if constexpr (std::same_as<Named, Host> || std::same_as<Named, Cuda> || std::same_as<Named, DeviceOfTheBuild>) {
            return true;
        } else {
            return zero::has_kernels_v<Named, typename Setup::optimizer::rule, typename Setup::precision>;
        }
    }();
    struct Report {
        static_assert(
            holds,
            "[ST0143] Compute<Device> names a device of your own that lacks a kernel of this composition. Fix: "
            "write update(), sum_of_squares(), update_average(), and for a rule with norms of whole parameters "
            "advance() and apply_direction(), const and as templates over rule and element types, or say "
            "`static constexpr bool is_host = true;` where its memory is the host's (docs/write-a-device.md).");
    };
};

}  // namespace rule
}  // namespace strata
