#pragma once
// strata/policy/compute.hpp - slot::Computation, and Compute<Device>: what a model computes on.

#include <strata/core/policy.hpp>
#include <strata/core/rule.hpp>

namespace strata {

struct Host {};  ///< the CPU of every rank
struct Cuda {};  ///< an NVIDIA GPU for every rank, and NCCL between them; in a build with STRATA_WITH_CUDA

/// Names what this build is for: Cuda in one with STRATA_WITH_CUDA, else Host. train/compute.hpp knows which.
struct DeviceOfTheBuild {};

namespace rule {

template <class P>
struct ComputeNamesADevice {
    static constexpr bool holds = requires { typename P::device; };
    struct Report {
        static_assert(holds,
                      "[ST0137] A policy of your own for the device names none. Fix: let it say `using device = "
                      "strata::Host;`, with Host, Cuda or a device of your own, or write Compute<MyDevice>.");
    };
};

}  // namespace rule

template <class Device>
struct Compute;

namespace slot {

/// What a model computes on.
struct Computation {
    static constexpr const char* name = "Computation";
    static constexpr const char* policy = "Compute<Cuda>";
    template <class... Ps>
    struct Members {
        using compute = select_t<Computation, Compute<DeviceOfTheBuild>, Ps...>;
    };
    template <class... Ps>
    static constexpr bool at_most_one = count_of_v<Computation, Ps...> <= 1;
    template <class P>
    using broken = rule::first_broken_t<rule::ComputeNamesADevice<P>>;
};

}  // namespace slot

/// Names what a model computes on. Where state lives is said by OffloadTarget: its tiers Device and Cpu are this
/// device's memory and the host's.
///
///   Device  Host, Cuda, or a type of your own that satisfies zero::ComputeDevice and is made without arguments
template <class Device>
struct Compute {
    using slot = slot::Computation;
    using device = Device;
};

}  // namespace strata
