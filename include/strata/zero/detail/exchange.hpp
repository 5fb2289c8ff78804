#pragma once
// strata/zero/detail/exchange.hpp - Exchange: collectives over tensors, wherever a device and a communicator keep bytes.

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/core/Tensor.h>

#include <strata/comm/channel.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero::detail {

/// The collectives of an engine, over contiguous tensors on its device; of one dimension but for broadcast().
///
/// A communicator that takes the device's memory gets it, once all that this thread has queued is done; another one gets
/// copies in host memory. Alone there is nothing to exchange, and copies stay on the device. All are collective, and throw
/// what the communicator throws.
template <comm::Communicator Comm, ComputeDevice Compute>
class Exchange {
    static_assert(!Compute::is_host || !comm::takes_device_memory_v<Comm>,
                  "This communicator exchanges memory of a GPU, and the engine computes on the CPU. Fix: give the engine the GPU as "
                  "its third argument, Engine<Setup, Comm, zero::CudaDevice>, or a communicator for host memory.");

public:
    Exchange(Comm& comm, BufferPool& pool, const Compute& compute) : comm_{comm}, pool_{pool}, compute_{compute} {}

    [[nodiscard]] int world() const { return comm_.world(); }
    /// For a few bytes in host memory.
    [[nodiscard]] auto& host() const noexcept { return comm::host_of(comm_); }

    /// Rank 0's values become everyone's.
    void broadcast(const at::Tensor& values) {
        if constexpr (direct) {
            comm_.broadcast(bytes_of(values), 0);
        } else if (comm_.world() > 1) {
            if constexpr (comm::takes_device_memory_v<Comm>) {
                compute_.finish();
                comm_.broadcast(bytes_of(values), 0);
            } else {
                const at::Tensor copy = on_host(values, values.numel());
                const at::Tensor flat = values.view({values.numel()});
                if (comm_.rank() == 0) copy.copy_(flat);
                comm_.broadcast(bytes_of(copy), 0);
                if (comm_.rank() != 0) flat.copy_(copy);
            }
        }
    }

    /// `all` becomes every rank's `mine`, in rank order; `mine` may be this rank's part of `all`, or in host memory.
    void all_gather(const at::Tensor& mine, const at::Tensor& all) {
        if constexpr (direct) {
            comm_.all_gather(bytes_of(mine), bytes_of(all));
        } else if (comm_.world() == 1) {
            copy_unless_same(mine, all);
        } else if constexpr (comm::takes_device_memory_v<Comm>) {
            const at::Tensor own = all.narrow(0, mine.numel() * comm_.rank(), mine.numel());
            copy_unless_same(mine, own);
            compute_.finish();
            comm_.all_gather(bytes_of(own), bytes_of(all));
        } else {
            const at::Tensor every = on_host(all, all.numel());
            const at::Tensor own = every.narrow(0, mine.numel() * comm_.rank(), mine.numel());
            own.copy_(mine);
            comm_.all_gather(bytes_of(own), bytes_of(every));
            all.copy_(every);
        }
    }

    /// `mine` becomes the sum over ranks of their part number rank() of `all`; it may be the rank's own part of `all`.
    ///
    ///   In, Out  the element types of `all` and of `mine`
    template <class In, class Out>
    void reduce_scatter(const at::Tensor& all, const at::Tensor& mine) {
        const auto sum = [this](const at::Tensor& from, const at::Tensor& to) {
            comm_.reduce_scatter(std::span<const In>{elements<In>(from)}, elements<Out>(to));
        };
        if constexpr (direct) {
            sum(all, mine);
        } else if (comm_.world() == 1) {
            copy_unless_same(all, mine);
        } else if constexpr (comm::takes_device_memory_v<Comm>) {
            compute_.finish();
            sum(all, mine);
        } else {
            const at::Tensor every = on_host(all, all.numel());
            const at::Tensor own = on_host(mine, mine.numel());
            every.copy_(all);
            sum(every, own);
            mine.copy_(own);
        }
    }

private:
    static constexpr bool direct = Compute::is_host;

    /// Room for `numel` elements of the type that `like` has.
    [[nodiscard]] at::Tensor on_host(const at::Tensor& like, std::int64_t numel) const {
        return pool_.empty(numel, like.scalar_type(), Held::buffers, Place::host);
    }
    static void copy_unless_same(const at::Tensor& from, const at::Tensor& to) {
        if (from.data_ptr() != to.data_ptr() || from.scalar_type() != to.scalar_type()) to.copy_(from);
    }

    Comm& comm_;
    BufferPool& pool_;
    Compute compute_;
};

/// A channel whose operations begin when what their poster has queued on the device is done, and end when what they have
/// queued there is: streams need no other order between them. Interface of comm::Channel.
///
/// The host waits, and not one stream for another, because an operation may be a collective that no stream knows of. In a
/// world of one operations run at once and on the poster's own stream, and nobody waits.
template <comm::Communicator Comm, ComputeDevice Compute>
class DeviceChannel {
public:
    using Ticket = typename comm::Channel<Comm>::Ticket;
    DeviceChannel(Comm& comm, const Compute& compute) : waits_{comm.world() > 1}, compute_{compute}, channel_{comm} {}

    template <std::invocable Work>
    Ticket post(std::string_view name, Work&& work) {
        if constexpr (Compute::is_host) {
            return channel_.post(name, std::forward<Work>(work));
        } else {
            if (!waits_) return channel_.post(name, std::forward<Work>(work));
            return channel_.post(name, [this, queued = compute_.fence(), work = std::forward<Work>(work)] {
                const typename Compute::Operation own_stream{compute_};
                queued.wait();
                work();
                compute_.finish();
            });
        }
    }
    void wait() { channel_.wait(); }

private:
    bool waits_;
    Compute compute_;
    comm::Channel<Comm> channel_;
};

}  // namespace strata::zero::detail
