#pragma once
// strata/policy/offload_target.hpp - OffloadTarget<...>: where sharded optimizer state lives.

#include <concepts>

#include <strata/core/policy.hpp>

namespace strata {

struct Cpu {};     ///< host memory, pinned when there is a GPU
struct Nvme {};    ///< files on a local disk
struct Device {};  ///< beside the parameters: no offload

/// Moves sharded optimizer state (and the fp32 master weights) off the compute device.
///
/// ZeRO-Offload (Ren et al. 2021, arXiv:2101.06840): the update runs where the state lives. When the
/// compute device is the CPU itself, Cpu and Device are the same memory.
///
///   Tier  Device, Cpu or Nvme
template <class Tier>
struct OffloadTarget {
    static_assert(std::same_as<Tier, Cpu> || std::same_as<Tier, Nvme>,
                  "[ST0103] OffloadTarget<Tier> knows the tiers Device, Cpu and Nvme. Fix: type one of these three.");
    using slot = slot::Offload;
    using tier = Tier;
    static constexpr bool enabled = true;
};
template <>
struct OffloadTarget<Device> {
    using slot = slot::Offload;
    using tier = Device;
    static constexpr bool enabled = false;
};

}  // namespace strata
