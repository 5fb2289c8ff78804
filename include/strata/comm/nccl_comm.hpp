#pragma once
// strata/comm/nccl_comm.hpp - NcclComm: bulk collectives between GPUs by NCCL, everything else by another communicator.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/comm/agree.hpp>
#include <strata/comm/collective_log.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/comm/gpu_assignment.hpp>
#include <strata/comm/stall.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>

// What cudaStream_t and ncclComm_t point to; only the body needs the headers of CUDA and NCCL.
struct CUstream_st;
struct ncclComm;

namespace strata::comm {

/// How an NcclComm works.
struct NcclOptions {
    /// The GPU of this rank, as CUDA numbers those that this process sees; no other rank of the host may be told the
    /// same one. -1: the first that this process sees and no lower rank of the host has, which is right whether a
    /// launcher shows each rank all GPUs of the host or one of its own (see gpu_assignment()).
    int device = -1;

    /// Memory of the GPU for parts that a reduce_scatter receives, those of all ranks together; the same on every rank.
    std::size_t window_bytes = std::size_t{32} << 20;
};

namespace detail {

/// What makes ranks one group of NCCL; the bytes of an ncclUniqueId.
using NcclId = std::array<std::byte, 128>;

/// One rank's GPU, its stream, and its part in NCCL. In a world of one there is no NCCL: collectives are copies.
///
/// What throws in a collective throws rank_failed and ends NCCL on this rank: no later collective could be right.
class NcclGroup {
public:
    NcclGroup(int rank, int world, const NcclOptions& options);
    /// What has not been disconnected is aborted.
    ~NcclGroup();
    NcclGroup(const NcclGroup&) = delete;
    NcclGroup& operator=(const NcclGroup&) = delete;

    /// What gpu_assignment() has to know of this rank; where CUDA fails, that this rank sees none. Local.
    [[nodiscard]] RankGpus look() const;
    /// Takes this rank's GPU and what is needed of it. Throws no_gpu, rank_failed. Local.
    ///   ranks  RankGpus::text() of what each rank saw when it looked
    void open(std::span<const std::string> ranks);
    [[nodiscard]] static NcclId new_id();
    void connect(const CollectiveRecord& what, const NcclId& id);
    void disconnect(const CollectiveRecord& what);

    void broadcast(const CollectiveRecord& what, std::span<std::byte> bytes, int root);
    void all_gather(const CollectiveRecord& what, std::span<const std::byte> mine, std::span<std::byte> all);
    void reduce_scatter(const CollectiveRecord& what, std::span<const float> all, std::span<float> mine);
    void reduce_scatter(const CollectiveRecord& what, std::span<const bf16> all, std::span<bf16> mine);
    void reduce_scatter(const CollectiveRecord& what, std::span<const bf16> all, std::span<float> mine);

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int world() const noexcept { return world_; }
    [[nodiscard]] int device() const noexcept { return device_; }
    [[nodiscard]] bool usable() const noexcept { return !interrupted_; }
    void interrupt() noexcept { interrupted_ = true; }

private:
    template <class Work>
    void collective(const CollectiveRecord& what, Work&& work);
    template <class Work>
    void group(const CollectiveRecord& what, Work&& work);
    template <class In, class Out>
    void sum_parts(const CollectiveRecord& what, std::span<const In> all, std::span<Out> mine);
    [[nodiscard]] bool is_settled() const;
    void settle(const CollectiveRecord& what);
    void finish(const CollectiveRecord& what);
    void pause(const CollectiveRecord& what, int& turn) const;
    void check_cuda(int code, std::string_view call) const;
    void check_nccl(int code, std::string_view call) const;
    void abandon() noexcept;

    int rank_;
    int world_;
    int device_;
    std::size_t window_bytes_;  // of one rank's part
    std::atomic<bool> interrupted_ = false;
    std::byte* window_ = nullptr;  // on the GPU: a window for every other rank, in rank order
    CUstream_st* stream_ = nullptr;
    ncclComm* nccl_ = nullptr;
};

}  // namespace detail

/// A GPU for each rank. broadcast, all_gather and reduce_scatter take spans over memory of this rank's GPU, which the
/// host never reads; barrier, all_gather_varied, all_reduce_sum and abort are the host communicator's.
///
/// The host waits for the GPU: a collective returns when its result is there, and what its buffers hold must be
/// complete when it is called, because it runs on a stream of its own. It makes this rank's GPU the calling thread's
/// current one. Waiting polls and then sleeps, so it can be interrupted, and the host's watchdog sees these collectives
/// like its own.
///
/// reduce_scatter adds in rank order in fp32, so its bits are MpiComm's (see 003 and 014 in docs/decisions).
///
///   Host  MpiComm, or SelfComm for one rank; outlives this
template <Communicator Host>
class NcclComm {
public:
    static constexpr bool takes_device_memory = true;

    /// Collective. Throws, on all ranks alike, no_gpu when a rank finds no GPU of its own or was told one that it
    /// cannot have, rank_failed when a GPU cannot be used; rank_failed where NCCL cannot connect the GPUs.
    explicit NcclComm(Host& host, const NcclOptions& options = {})
        : host_{host}, exceptions_at_start_{std::uncaught_exceptions()}, group_{host.rank(), host.world(), options} {
        const std::vector<std::string> ranks = host_.all_gather_varied(group_.look().text());
        detail::NcclId id{};
        agree(host_, [&] {
            group_.open(ranks);
            if (rank() == 0 && world() > 1) id = detail::NcclGroup::new_id();
        });
        if (world() == 1) return;
        host_.broadcast(id, 0);
        watched("nccl_connect", 0, [&](const CollectiveRecord& what) { group_.connect(what, id); });
    }

    /// While an exception unwinds the stack, and after a failure or interrupt(), NCCL is aborted: to disconnect would
    /// be to wait for ranks that wait for this one. Otherwise it waits for the other ranks as long as they need.
    ~NcclComm() {
        if (world() == 1 || !group_.usable() || std::uncaught_exceptions() > exceptions_at_start_) return;
        try {
            group_.disconnect(CollectiveRecord{});  // not watched: a rank may have work of its own to do before it ends
        } catch (const Error&) {                    // group_ aborts what is still connected
        }
    }
    NcclComm(const NcclComm&) = delete;
    NcclComm& operator=(const NcclComm&) = delete;

    [[nodiscard]] int rank() const noexcept { return group_.rank(); }
    [[nodiscard]] int world() const noexcept { return group_.world(); }

    /// The communicator for what lies in host memory.
    [[nodiscard]] Host& host() const noexcept { return host_; }

    /// This rank's GPU, as CUDA numbers those that this process sees.
    [[nodiscard]] int device() const noexcept { return group_.device(); }

    void barrier() { host_.barrier(); }
    [[nodiscard]] std::vector<std::string> all_gather_varied(std::string_view mine) {
        return host_.all_gather_varied(mine);
    }
    void all_reduce_sum(std::span<double> values) { host_.all_reduce_sum(values); }
    [[noreturn]] void abort(int status) noexcept { host_.abort(status); }

    void broadcast(std::span<std::byte> bytes, int root) {
        watched("broadcast", bytes.size(), [&](const auto& what) { group_.broadcast(what, bytes, root); });
    }
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
        watched("all_gather", mine.size(), [&](const auto& what) { group_.all_gather(what, mine, all); });
    }
    void reduce_scatter(std::span<const float> all, std::span<float> mine) { sum_parts(all, mine); }
    void reduce_scatter(std::span<const bf16> all, std::span<bf16> mine) { sum_parts(all, mine); }
    void reduce_scatter(std::span<const bf16> all, std::span<float> mine) { sum_parts(all, mine); }

    /// As MpiComm's, for this communicator and its host together.
    void label(std::string_view text) {
        if constexpr (requires { host_.label(text); }) host_.label(text);
    }
    void set_collective_timeout(std::chrono::milliseconds timeout) noexcept {
        if constexpr (requires { host_.set_collective_timeout(timeout); }) host_.set_collective_timeout(timeout);
    }
    void on_stall(StallHook hook) {
        if constexpr (requires { host_.on_stall(std::move(hook)); }) host_.on_stall(std::move(hook));
    }
    void interrupt() noexcept {
        group_.interrupt();
        if constexpr (requires { host_.interrupt(); }) host_.interrupt();
    }

private:
    template <class Work>
    void watched(std::string_view op, std::size_t bytes, Work&& work) {
        if constexpr (requires { host_.watch(op, bytes); }) {
            const auto running = host_.watch(op, bytes);
            work(running.record());
        } else {
            work(CollectiveRecord{});
        }
    }
    template <class In, class Out>
    void sum_parts(std::span<const In> all, std::span<Out> mine) {
        watched("reduce_scatter", all.size_bytes(), [&](const auto& what) { group_.reduce_scatter(what, all, mine); });
    }

    Host& host_;
    int exceptions_at_start_;
    detail::NcclGroup group_;
};

static_assert(Communicator<NcclComm<archetype::Communicator>>);

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/nccl_comm.ipp>
#endif
