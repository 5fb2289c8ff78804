#pragma once
// strata/comm/impl/nccl_comm.ipp - collectives on a GPU's stream, and a host that waits for them without hanging.

#include <algorithm>
#include <cassert>
#include <cstring>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <strata/comm/nccl_comm.hpp>
#include <strata/comm/rank_order_sum.hpp>
#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>

namespace strata::comm::detail {

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

// A GPU's widest load is 16 bytes, so windows begin at multiples of that.
STRATA_INLINE NcclGroup::NcclGroup(int rank, int world, const NcclOptions& options)
    : rank_{rank},
      world_{world},
      device_{options.device},
      window_bytes_{std::max<std::size_t>(
          16, options.window_bytes / static_cast<std::size_t>(std::max(1, world - 1)) / 16 * 16)} {}

STRATA_INLINE NcclGroup::~NcclGroup() {
    if (nccl_ != nullptr) abandon();
    // To give memory back would be to wait for kernels, and those of a group that failed may never end.
    if (interrupted_ || stream_ == nullptr) return;
    cudaSetDevice(device_);
    cudaFree(window_);
    cudaStreamDestroy(stream_);
}

STRATA_INLINE RankGpus NcclGroup::look() const {
    RankGpus mine{core::host_name(), {}, device_};
    int gpus = 0;
    cudaError_t code = cudaGetDeviceCount(&gpus);
    for (int gpu = 0; code == cudaSuccess && gpu < gpus; ++gpu) {
        std::array<char, 32> id{};  // "0000:17:00.0"
        code = cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), gpu);
        mine.ids.emplace_back(id.data());
    }
    if (code != cudaSuccess) {
        mine.ids.clear();
        mine.none_because = cudaGetErrorString(code);
    }
    return mine;
}

STRATA_INLINE void NcclGroup::open(std::span<const std::string> ranks) {
    std::vector<RankGpus> seen;
    for (const std::string& text : ranks) seen.push_back(RankGpus::from_text(text));
    device_ = gpu_assignment(seen)[static_cast<std::size_t>(rank_)];
    check_cuda(cudaSetDevice(device_), "cudaSetDevice");
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    if (world_ == 1) return;
    void* window = nullptr;
    check_cuda(cudaMalloc(&window, window_bytes_ * static_cast<std::size_t>(world_ - 1)), "cudaMalloc");
    window_ = static_cast<std::byte*>(window);
}

STRATA_INLINE void NcclGroup::check_cuda(int code, std::string_view call) const {
    if (code == cudaSuccess) return;
    throw Error{Errc::rank_failed,
                std::string{call} + " failed on GPU " + std::to_string(device_) + " of rank " + std::to_string(rank_) +
                    ": " + cudaGetErrorString(static_cast<cudaError_t>(code)),
                "look at that GPU with nvidia-smi: its free memory, its errors, other programs on it"};
}

STRATA_INLINE void NcclGroup::check_nccl(int code, std::string_view call) const {
    if (code == ncclSuccess || code == ncclInProgress) return;  // NCCL works on it: settle() waits
    const char* const said = ncclGetLastError(nccl_);
    const std::string details = said == nullptr || *said == '\0' ? "" : std::string{" ("} + said + ")";
    throw Error{Errc::rank_failed,
                std::string{call} + " failed on rank " + std::to_string(rank_) + ": " +
                    ncclGetErrorString(static_cast<ncclResult_t>(code)) + details,
                "look for the first error line of the other ranks and at the GPU's free memory; NCCL_DEBUG=WARN in the "
                "environment makes NCCL say more"};
}

// ---- waiting: every call of NCCL returns at once, and what it began is asked for ------------------------------------

STRATA_INLINE void NcclGroup::pause(const CollectiveRecord& what, int& turn) const {
    if (interrupted_.load(std::memory_order_relaxed)) throw_interrupted(what);
    // A collective that only has to be launched ends within the first turns. Whoever waits longer waits for bytes or
    // for a rank that is late, and leaves the core to others meanwhile; what sleeping adds is little beside either.
    constexpr int turns_before_sleep = 500;
    if (turn++ < turns_before_sleep) return;
    std::this_thread::sleep_for(std::chrono::microseconds{std::min(20 + (turn - turns_before_sleep) / 4, 200)});
}

STRATA_INLINE bool NcclGroup::is_settled() const {
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(nccl_, &state), "ncclCommGetAsyncError");
    check_nccl(state, "NCCL");
    return state != ncclInProgress;
}

/// Until then what NCCL was told may not be on the stream yet, and what is put there would come before it.
STRATA_INLINE void NcclGroup::settle(const CollectiveRecord& what) {
    for (int turn = 0; !is_settled();) pause(what, turn);
}

STRATA_INLINE void NcclGroup::finish(const CollectiveRecord& what) {
    for (int turn = 0;; pause(what, turn)) {
        if (nccl_ != nullptr) (void)is_settled();  // throws when a peer or the network has failed since
        const cudaError_t state = cudaStreamQuery(stream_);
        if (state == cudaSuccess) return;
        if (state != cudaErrorNotReady) check_cuda(state, "cudaStreamQuery");
        (void)cudaGetLastError();  // "not ready" is an answer, and must not be taken for the next launch's error
    }
}

STRATA_INLINE void NcclGroup::abandon() noexcept {
    interrupted_ = true;
    ncclComm* const nccl = std::exchange(nccl_, nullptr);
    if (nccl == nullptr) return;
    // Ends the kernels, so that nobody writes into the caller's buffers any more. It may wait for other ranks of the
    // host to abort as well, and they for this one to fail: then the job's end comes first, and nothing is lost.
    try {
        const auto aborted = std::make_shared<std::promise<void>>();
        std::thread{[nccl, aborted, device = device_] {
            cudaSetDevice(device);
            ncclCommAbort(nccl);
            aborted->set_value();
        }}.detach();
        (void)aborted->get_future().wait_for(std::chrono::seconds{1});
    } catch (const std::exception&) {  // no thread to be had
    }
}

template <class Work>
void NcclGroup::collective(const CollectiveRecord& what, Work&& work) {
    if (interrupted_) throw_interrupted(what);
    try {
        check_cuda(cudaSetDevice(device_), "cudaSetDevice");
        work();
    } catch (...) {
        abandon();
        throw;
    }
}

template <class Work>
void NcclGroup::group(const CollectiveRecord& what, Work&& work) {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    try {
        work();
    } catch (...) {
        ncclGroupEnd();  // the thread must not stay inside
        throw;
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    settle(what);
}

// ---- the group ------------------------------------------------------------------------------------------------------

STRATA_INLINE NcclId NcclGroup::new_id() {
    ncclUniqueId unique{};
    if (const ncclResult_t code = ncclGetUniqueId(&unique); code != ncclSuccess)
        throw Error{Errc::rank_failed, std::string{"ncclGetUniqueId failed: "} + ncclGetErrorString(code),
                    "set NCCL_SOCKET_IFNAME to the network interface that reaches the other hosts"};
    NcclId id{};
    std::memcpy(id.data(), &unique, sizeof unique);
    return id;
}

STRATA_INLINE void NcclGroup::connect(const CollectiveRecord& what, const NcclId& id) {
    collective(what, [&] {
        ncclUniqueId unique{};
        std::memcpy(&unique, id.data(), sizeof unique);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;  // no call waits for another rank
        check_nccl(ncclCommInitRankConfig(&nccl_, world_, unique, rank_, &config), "ncclCommInitRankConfig");
        settle(what);
    });
    // NCCL takes the memory of a transport when it is first used, which is too late once libtorch keeps what is free.
    const auto ranks = static_cast<std::size_t>(world_);
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, ranks * sizeof(float)), "cudaMalloc");
    const std::unique_ptr<void, decltype(&cudaFree)> owner{memory, &cudaFree};
    const std::span<float> values{static_cast<float*>(memory), ranks};
    const std::span<float> mine = values.subspan(static_cast<std::size_t>(rank_), 1);
    broadcast(what, std::as_writable_bytes(mine), 0);
    all_gather(what, std::as_bytes(mine), std::as_writable_bytes(values));
    reduce_scatter(what, std::span<const float>{values}, mine);
}

STRATA_INLINE void NcclGroup::disconnect(const CollectiveRecord& what) {
    collective(what, [&] {
        check_nccl(ncclCommFinalize(nccl_), "ncclCommFinalize");
        settle(what);
        check_nccl(ncclCommDestroy(std::exchange(nccl_, nullptr)), "ncclCommDestroy");
    });
}

// ---- the collectives ------------------------------------------------------------------------------------------------

STRATA_INLINE void NcclGroup::broadcast(const CollectiveRecord& what, std::span<std::byte> bytes, int root) {
    collective(what, [&] {
        if (world_ == 1 || bytes.empty()) return;
        group(what, [&] {
            check_nccl(ncclBroadcast(bytes.data(), bytes.data(), bytes.size(), ncclChar, root, nccl_, stream_),
                       "ncclBroadcast");
        });
        finish(what);
    });
}

STRATA_INLINE void NcclGroup::all_gather(const CollectiveRecord& what, std::span<const std::byte> mine,
                                         std::span<std::byte> all) {
    assert(all.size() == mine.size() * static_cast<std::size_t>(world_));
    collective(what, [&] {
        if (mine.empty()) return;
        if (world_ > 1) {
            group(what, [&] {
                check_nccl(ncclAllGather(mine.data(), all.data(), mine.size(), ncclChar, nccl_, stream_),
                           "ncclAllGather");
            });
        } else if (mine.data() != all.data()) {
            check_cuda(cudaMemcpyAsync(all.data(), mine.data(), mine.size(), cudaMemcpyDeviceToDevice, stream_),
                       "cudaMemcpyAsync");
        }
        finish(what);
    });
}

template <class In, class Out>
void NcclGroup::sum_parts(const CollectiveRecord& what, std::span<const In> all, std::span<Out> mine) {
    assert(all.size() == mine.size() * static_cast<std::size_t>(world_));
    collective(what, [&] {
        const std::size_t numel = mine.size();
        if (numel == 0) return;
        const std::size_t run = world_ == 1 ? numel : window_bytes_ / sizeof(In);
        const auto part = [&](int rank, std::size_t begin) {
            return all.data() + static_cast<std::size_t>(rank) * numel + begin;
        };
        for (std::size_t begin = 0; begin < numel; begin += run) {
            const std::size_t count = std::min(run, numel - begin);
            const RankAddends<In> addends{part(rank_, begin), reinterpret_cast<const In*>(window_), run, rank_, world_};
            if (world_ > 1) {
                group(what, [&] {
                    // Each rank starts with its neighbours, so that no rank is everybody's first partner.
                    for (int step = 1; step < world_; ++step) {
                        const int source = (rank_ - step + world_) % world_;
                        const int target = (rank_ + step) % world_;
                        check_nccl(ncclRecv(const_cast<In*>(addends.of(source)), count * sizeof(In), ncclChar, source,
                                            nccl_, stream_),
                                   "ncclRecv");
                        check_nccl(ncclSend(part(target, begin), count * sizeof(In), ncclChar, target, nccl_, stream_),
                                   "ncclSend");
                    }
                });
            }
            check_cuda(rank_order_sum(addends, count, mine.data() + begin, stream_), "rank_order_sum");
        }
        finish(what);
    });
}

STRATA_INLINE void NcclGroup::reduce_scatter(const CollectiveRecord& what, std::span<const float> all,
                                             std::span<float> mine) {
    sum_parts(what, all, mine);
}
STRATA_INLINE void NcclGroup::reduce_scatter(const CollectiveRecord& what, std::span<const bf16> all,
                                             std::span<bf16> mine) {
    sum_parts(what, all, mine);
}
STRATA_INLINE void NcclGroup::reduce_scatter(const CollectiveRecord& what, std::span<const bf16> all,
                                             std::span<float> mine) {
    sum_parts(what, all, mine);
}

}  // namespace strata::comm::detail
