#pragma once
// strata/zero/parts/exchange.hpp - Exchange: an engine's collectives over tensors, and the thread that they run on.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/comm/agree.hpp>
#include <strata/comm/channel.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/function_ref.hpp>
#include <strata/zero/compute_device.hpp>
#include <strata/zero/detail/buffer_pool.hpp>
#include <strata/zero/detail/preparation.hpp>

namespace strata::zero {

/// The collectives of an engine, over contiguous tensors on its device, of one dimension but for broadcast(); and a
/// channel (comm/channel.hpp) for those that run beside the computation.
///
/// The parts of an engine know this class only, so that they are compiled once and not for every communicator and device:
/// ExchangeOver makes one of either. All but post() and what is const is collective, and throws what the communicator throws.
class Exchange {
public:
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    virtual ~Exchange() = default;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int world() const noexcept { return world_; }
    [[nodiscard]] bool alone() const noexcept { return world_ == 1; }

    /// Rank 0's values become everyone's.
    virtual void broadcast(const at::Tensor& values) = 0;
    /// `all` becomes every rank's `mine`, in rank order; `mine` may be this rank's part of `all`, or in host memory.
    virtual void all_gather(const at::Tensor& mine, const at::Tensor& all) = 0;
    /// `mine` becomes the sum over ranks of their part number rank() of `all`; it may be the rank's own part of `all`.
    /// Both fp32, both bf16, or bf16 that is added up in fp32.
    virtual void reduce_scatter(const at::Tensor& all, const at::Tensor& mine) = 0;

    /// The same for a few bytes in host memory.
    virtual void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
    [[nodiscard]] virtual std::vector<std::string> all_gather_texts(std::string_view mine) = 0;
    /// comm::agree(): what `work` threw on one rank is thrown on all.
    void agree(core::FunctionRef<void()> work) {
        comm::detail::throw_first(all_gather_texts(comm::detail::failure_of(rank_, work)));
    }

    /// The engine's name, in what communicators say about its collectives. The same on every rank. Local.
    void call_it(std::string name) { name_ = std::move(name); }
    /// "units of critic". Local.
    [[nodiscard]] std::string label(std::string_view operation) const {
        return std::string{operation} + (name_.empty() ? "" : " of " + name_);
    }

    /// Hands an operation to the channel: Channel::post(), which is told its label(). Local.
    virtual comm::Ticket post(std::string_view name, std::function<void()> work) = 0;
    /// Returns when all that was posted is done; throws what it threw.
    virtual void wait() = 0;
    /// Ends the channel, as its destructor does: before anything goes that operations read or write.
    virtual void close() noexcept = 0;

protected:
    Exchange(int rank, int world) noexcept : rank_{rank}, world_{world} {}

private:
    int rank_;
    int world_;
    std::string name_;
};

/// What an engine is called in messages: the name that rank 0 gives it, else its number in the program, "engine 2". Collective.
[[nodiscard]] std::string agreed_name(Exchange& exchange, const std::string& given);

/// A channel whose operations begin when what their poster has queued on the device is done, and end when what they have
/// queued there is: streams need no other order between them. Interface of comm::Channel.
///
/// The host waits, and not one stream for another, because an operation may be a collective that no stream knows of. In a
/// world of one operations run at once and on the poster's own stream, and nobody waits.
template <comm::Communicator Comm, ComputeDevice Compute>
class DeviceChannel {
public:
    using Ticket = comm::Ticket;
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

/// An Exchange over a communicator and a device.
///
/// A communicator that takes the device's memory gets it, once all that this thread has queued is done; another one gets
/// copies in host memory. Alone there is nothing to exchange, and copies stay on the device.
template <comm::Communicator Comm, ComputeDevice Compute>
class ExchangeOver final : public Exchange {
    static_assert(
        !Compute::is_host || !comm::takes_device_memory_v<Comm>,
        "This communicator exchanges memory of a GPU, and the engine computes on the CPU. Fix: give the engine the GPU as "
        "its third argument, Engine<Setup, Comm, zero::CudaDevice>, or a communicator for host memory.");

public:
    /// comm, pool  outlive it
    ExchangeOver(Comm& comm, detail::BufferPool& pool, const Compute& compute)
        : Exchange{comm.rank(), comm.world()}, comm_{comm}, pool_{pool}, compute_{compute} {
        channel_.emplace(comm, compute);
    }

    void broadcast(const at::Tensor& values) override {
        if constexpr (direct) {
            comm_.broadcast(detail::bytes_of(values), 0);
        } else if (world() > 1) {
            if constexpr (comm::takes_device_memory_v<Comm>) {
                compute_.finish();
                comm_.broadcast(detail::bytes_of(values), 0);
            } else {
                const at::Tensor copy = on_host(values, values.numel());
                const at::Tensor flat = values.view({values.numel()});
                if (rank() == 0) copy.copy_(flat);
                comm_.broadcast(detail::bytes_of(copy), 0);
                if (rank() != 0) flat.copy_(copy);
            }
        }
    }

    void all_gather(const at::Tensor& mine, const at::Tensor& all) override {
        if constexpr (direct) {
            comm_.all_gather(detail::bytes_of(mine), detail::bytes_of(all));
        } else if (world() == 1) {
            copy_unless_same(mine, all);
        } else if constexpr (comm::takes_device_memory_v<Comm>) {
            const at::Tensor own = all.narrow(0, mine.numel() * rank(), mine.numel());
            copy_unless_same(mine, own);
            compute_.finish();
            comm_.all_gather(detail::bytes_of(own), detail::bytes_of(all));
        } else {
            const at::Tensor every = on_host(all, all.numel());
            const at::Tensor own = every.narrow(0, mine.numel() * rank(), mine.numel());
            own.copy_(mine);
            comm_.all_gather(detail::bytes_of(own), detail::bytes_of(every));
            all.copy_(every);
        }
    }

    void reduce_scatter(const at::Tensor& all, const at::Tensor& mine) override {
        if constexpr (direct) {
            sum(all, mine);
        } else if (world() == 1) {
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

    void all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) override {
        comm::host_of(comm_).all_gather(mine, all);
    }
    [[nodiscard]] std::vector<std::string> all_gather_texts(std::string_view mine) override {
        return comm_.all_gather_varied(mine);
    }

    comm::Ticket post(std::string_view name, std::function<void()> work) override {
        return channel_->post(label(name), std::move(work));
    }
    void wait() override { channel_->wait(); }
    void close() noexcept override { channel_.reset(); }

private:
    static constexpr bool direct = Compute::is_host;

    template <class In, class Out>
    void sum_as(const at::Tensor& all, const at::Tensor& mine) {
        comm_.reduce_scatter(std::span<const In>{detail::elements<In>(all)}, detail::elements<Out>(mine));
    }
    void sum(const at::Tensor& all, const at::Tensor& mine) {
        if (all.scalar_type() == at::kFloat) {
            sum_as<float, float>(all, mine);
        } else if (mine.scalar_type() == at::kFloat) {
            sum_as<bf16, float>(all, mine);
        } else {
            sum_as<bf16, bf16>(all, mine);
        }
    }
    /// Room for `numel` elements of the type that `like` has.
    [[nodiscard]] at::Tensor on_host(const at::Tensor& like, std::int64_t numel) const {
        return pool_.empty(numel, like.scalar_type(), MemoryKind::buffers, Place::host);
    }
    static void copy_unless_same(const at::Tensor& from, const at::Tensor& to) {
        if (from.data_ptr() != to.data_ptr() || from.scalar_type() != to.scalar_type()) to.copy_(from);
    }

    Comm& comm_;
    detail::BufferPool& pool_;
    Compute compute_;
    std::optional<DeviceChannel<Comm, Compute>> channel_;
};

}  // namespace strata::zero

#ifndef STRATA_COMPILED
#include <strata/zero/impl/exchange.ipp>
#endif
