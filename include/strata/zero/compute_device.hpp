#pragma once
// strata/zero/compute_device.hpp - ComputeDevice: where a model's parameters are, and where its state may be updated.

#include <concepts>
#include <cstdint>

#include <c10/core/Device.h>

#include <strata/core/policy.hpp>
#include <strata/offload/host_arena.hpp>

namespace strata::zero {

/// The CPU itself: device memory and host memory are one, and what is called has happened.
struct CpuDevice {
    static constexpr bool is_host = true;
    [[nodiscard]] at::Device device() const noexcept { return at::kCPU; }
    [[nodiscard]] offload::Pinning pinning() const { return {}; }
};

/// A device that an engine can train on. Light to copy; copies are the same device.
///
///   * device(): libtorch's name of it, with its index.
///   * pinning(): how host memory becomes known to it.
///   * is_host: the host reads and writes its memory as its own. Nothing else is then asked.
/// Otherwise addresses of its memory mean nothing to the host, work is queued on streams, and the device has
///   * fence(): a mark behind everything that the calling thread's current stream holds; copyable, and its wait() blocks
///     the host until that is done.
///   * finish(): blocks the host until that stream is done.
///   * Operation{device}: while it lives, the calling thread works on a stream of its own.
///   * free_memory(): bytes that can still be had; release_cached(): libtorch gives back what it keeps for later.
///   * kernels, which are queued on the calling thread's current stream, over spans of device addresses:
///     update<Rule>(scalars, transform, gradient, weight, state, copy, rounding) as optim::update, where `copy` is empty
///     when there is none; sum_of_squares(values, result) as optim::sum_of_squares, its result one double at a device
///     address; update_average(decay, weight, average) as optim::update_average; and for rules with norms of whole
///     parameters advance<Rule>() and apply_direction<Rule>() as in optim/layerwise_kernel.hpp, with the norms at device
///     addresses, and segments and ratios in host memory. All give the CPU's bits.
template <class D>
concept ComputeDevice = std::copyable<D> && requires(const D& device) {
    typename strata::detail::Constant<static_cast<bool>(D::is_host)>;
    { device.device() } -> std::same_as<at::Device>;
    { device.pinning() } -> std::same_as<offload::Pinning>;
} &&(D::is_host || requires(const D& device) {
    { device.fence() } -> std::copyable;
    device.fence().wait();
    device.finish();
    typename D::Operation;
    { device.free_memory() } -> std::same_as<std::uint64_t>;
    device.release_cached();
});

static_assert(ComputeDevice<CpuDevice>);

}  // namespace strata::zero
