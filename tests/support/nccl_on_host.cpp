// tests/support/nccl_on_host.cpp - streams that run when they are queried, and NCCL's messages as MPI messages.

#include "nccl_on_host.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <strata/comm/rank_order_sum.hpp>

/// Operations in order. Each says by `true` that it is done; the first time it is asked it does nothing.
struct CUstream_st {
    struct Operation {
        std::function<bool()> advance;
        const void* owner = nullptr;  // an NCCL communicator, whose abort takes the operation away
        bool asked = false;
    };
    int device;
    std::mutex mutex;  // an abort comes from another thread
    std::deque<Operation> waiting;

    void put(std::function<bool()> advance, const void* owner = nullptr) {
        const std::lock_guard lock{mutex};
        waiting.push_back({std::move(advance), owner});
    }
};

namespace {

std::atomic<int> connected, destroyed, aborted, groups, pieces_of_memory, streams;
thread_local int current_device = 0;

bool is_visible(int device) {
    return device >= 0 && static_cast<std::size_t>(device) < nccl_on_host::faults().visible.size();
}

bool is_current(const CUstream_st* stream) { return stream != nullptr && stream->device == current_device; }

/// A message of a group: to a peer when `from` is set, else from one.
struct Message {
    const void* from;
    void* to;
    std::size_t bytes;
    int peer;
};

/// What one group has for one stream.
struct Batch {
    ncclComm* comm;
    CUstream_st* stream;
    std::vector<Message> messages;
};

thread_local int group_depth = 0;
thread_local std::vector<Batch> open_group;

}  // namespace

/// One communicator: first it connects, then groups go through it.
struct ncclComm {
    int device = 0;
    int rank = 0;
    int world = 1;
    ncclUniqueId id{};
    MPI_Comm ranks = MPI_COMM_NULL;
    MPI_Request connecting = MPI_REQUEST_NULL;
    bool is_connected = false;
    bool finalized = false;
    int questions = 0;  // until what was begun has settled
    std::vector<Batch> launching;
    std::vector<CUstream_st*> used;

    void begin_settling() { questions = 2; }
};

namespace {

/// A group's messages on the stream: all posted when its turn comes, then waited for.
class Exchange {
public:
    Exchange(MPI_Comm ranks, int rank, std::vector<Message> messages)
        : ranks_{ranks}, rank_{rank}, messages_{std::move(messages)} {}

    bool advance() {
        if (!posted_) post();
        int done = 0;
        MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
        return done != 0;
    }
    ~Exchange() {
        for (MPI_Request& request : requests_) {
            if (request == MPI_REQUEST_NULL) continue;
            MPI_Cancel(&request);
            MPI_Request_free(&request);
        }
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

private:
    void post() {
        posted_ = true;
        for (const Message& message : messages_) {
            const int count = static_cast<int>(message.bytes);
            if (message.peer == rank_) {  // an all-gather's own part
                std::memmove(message.to, message.from, message.bytes);
                continue;
            }
            MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
            if (message.from != nullptr)
                MPI_Isend(message.from, count, MPI_BYTE, message.peer, 0, ranks_, &request);
            else
                MPI_Irecv(message.to, count, MPI_BYTE, message.peer, 0, ranks_, &request);
        }
    }
    MPI_Comm ranks_;
    int rank_;
    std::vector<Message> messages_;
    std::vector<MPI_Request> requests_;
    bool posted_ = false;
};

ncclResult_t add(ncclComm* comm, CUstream_st* stream, std::vector<Message> messages) {
    if (comm == nullptr || !comm->is_connected || comm->questions > 0 || comm->finalized) return ncclInvalidUsage;
    if (comm->device != current_device || !is_current(stream)) return ncclInvalidArgument;
    if (open_group.empty() || open_group.back().comm != comm || open_group.back().stream != stream)
        open_group.push_back({comm, stream, {}});
    auto& all = open_group.back().messages;
    all.insert(all.end(), messages.begin(), messages.end());
    return ncclSuccess;
}

/// One operation outside of a group is a group of one.
ncclResult_t add_alone(ncclComm* comm, CUstream_st* stream, std::vector<Message> messages) {
    ncclGroupStart();
    const ncclResult_t added = add(comm, stream, std::move(messages));
    const ncclResult_t ended = ncclGroupEnd();
    return added != ncclSuccess ? added : ended;
}

template <class In, class Out>
int sum_on_host(const strata::comm::RankAddends<In>& addends, std::size_t count, Out* to, void* stream) {
    namespace detail = strata::comm::detail;
    CUstream_st* const on = static_cast<CUstream_st*>(stream);
    if (!is_current(on)) return cudaErrorInvalidResourceHandle;
    on->put([=] {
        constexpr auto most = static_cast<std::size_t>(detail::most_neighbours<In>);
        std::size_t i = 0;
        if (detail::lies_in_sixteens(addends, to)) {
            for (; i + most <= count; i += most) detail::sum_neighbours<detail::most_neighbours<In>>(addends, i, to);
        }
        for (; i < count; ++i) detail::sum_neighbours<1>(addends, i, to);
        return true;
    });
    return cudaSuccess;
}

}  // namespace

namespace nccl_on_host {

std::vector<int> gpus(int first, int count) {
    std::vector<int> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), first);
    return all;
}

Faults& faults() noexcept {
    static Faults all;
    return all;
}

Counts counts() noexcept {
    return {connected.load(), destroyed.load(), aborted.load(), groups.load(), pieces_of_memory.load(), streams.load()};
}

}  // namespace nccl_on_host

// ---- strata's kernel ------------------------------------------------------------------------------------------------

namespace strata::comm {

int rank_order_sum(const RankAddends<float>& addends, std::size_t count, float* to, void* stream) noexcept {
    return sum_on_host(addends, count, to, stream);
}
int rank_order_sum(const RankAddends<bf16>& addends, std::size_t count, bf16* to, void* stream) noexcept {
    return sum_on_host(addends, count, to, stream);
}
int rank_order_sum(const RankAddends<bf16>& addends, std::size_t count, float* to, void* stream) noexcept {
    return sum_on_host(addends, count, to, stream);
}

}  // namespace strata::comm

// ---- the CUDA runtime -----------------------------------------------------------------------------------------------

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    *count = static_cast<int>(nccl_on_host::faults().visible.size());
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
    if (!is_visible(device)) return cudaErrorInvalidDevice;
    if (length < 13) return cudaErrorInvalidValue;
    const int gpu = nccl_on_host::faults().visible[static_cast<std::size_t>(device)];
    std::snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0", gpu);
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (!is_visible(device)) return cudaErrorInvalidDevice;
    current_device = device;
    return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorNoDevice ? "no CUDA-capable device is detected" : "an error of the stand-in";
}

cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = new CUstream_st{.device = current_device, .mutex = {}, .waiting = {}};
    ++streams;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    --streams;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    if (!is_current(stream)) return cudaErrorInvalidResourceHandle;
    const std::lock_guard lock{stream->mutex};
    while (!stream->waiting.empty()) {
        CUstream_st::Operation& next = stream->waiting.front();
        if (!std::exchange(next.asked, true) || !next.advance()) return cudaErrorNotReady;
        stream->waiting.pop_front();
    }
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
    *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(*memory, 0xff, bytes);  // what was never received is NaN
    ++pieces_of_memory;
    return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
    if (memory != nullptr) --pieces_of_memory;
    std::free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    if (kind != cudaMemcpyDeviceToDevice || !is_current(stream)) return cudaErrorInvalidValue;
    stream->put([=] {
        std::memcpy(to, from, bytes);
        return true;
    });
    return cudaSuccess;
}

// ---- NCCL -----------------------------------------------------------------------------------------------------------

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    static int made = 0;
    std::memset(id, 0, sizeof *id);
    const int number = ++made;
    std::memcpy(id->internal, &number, sizeof number);
    std::memcpy(id->internal + sizeof *id - 5, "strat", 5);
    return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t code) {
    return code == ncclRemoteError ? "remote process exited or there was a network error" : "invalid usage";
}

const char* ncclGetLastError(ncclComm_t) { return "the stand-in says so"; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int world, ncclUniqueId id, int rank, ncclConfig_t* config) {
    if (config->blocking != 0 || config->magic != 0xcafebeef) return ncclInvalidArgument;
    *comm = new ncclComm;
    (*comm)->device = current_device;
    (*comm)->rank = rank;
    (*comm)->world = world;
    (*comm)->id = id;
    if (!nccl_on_host::faults().never_connects) MPI_Comm_idup(MPI_COMM_WORLD, &(*comm)->ranks, &(*comm)->connecting);
    (*comm)->begin_settling();
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
    if (comm->device != current_device) return ncclInvalidArgument;
    *state = nccl_on_host::faults().async_error;
    if (*state != ncclSuccess) return ncclSuccess;
    *state = ncclInProgress;
    if (comm->questions > 0 && --comm->questions > 0) return ncclSuccess;
    if (!comm->is_connected) {
        comm->questions = 1;
        int done = 0;
        if (comm->connecting != MPI_REQUEST_NULL) MPI_Test(&comm->connecting, &done, MPI_STATUS_IGNORE);
        if (done == 0) return ncclSuccess;
        ncclUniqueId first = comm->id;
        MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, comm->ranks);
        if (std::memcmp(&first, &comm->id, sizeof first) != 0) {
            *state = ncclInvalidUsage;
            return ncclSuccess;
        }
        comm->questions = 0;
        comm->is_connected = true;
        ++connected;
    }
    for (Batch& batch : std::exchange(comm->launching, {})) {
        const auto exchange = std::make_shared<Exchange>(comm->ranks, comm->rank, std::move(batch.messages));
        batch.stream->put([exchange] { return exchange->advance(); }, comm);
        comm->used.push_back(batch.stream);
        ++groups;
    }
    *state = ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    comm->finalized = true;
    comm->begin_settling();
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (!comm->finalized || comm->questions > 0) return ncclInvalidUsage;
    MPI_Comm_free(&comm->ranks);
    delete comm;
    ++destroyed;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
    ++aborted;
    while (nccl_on_host::faults().abort_hangs) std::this_thread::yield();
    for (CUstream_st* const stream : comm->used) {
        const std::lock_guard lock{stream->mutex};
        std::erase_if(stream->waiting, [comm](const auto& operation) { return operation.owner == comm; });
    }
    delete comm;  // and not comm->ranks: to free it would be to wait for all ranks
    return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
    ++group_depth;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
    if (group_depth == 0) return ncclInvalidUsage;
    if (--group_depth > 0) return ncclSuccess;
    for (Batch& batch : std::exchange(open_group, {})) {
        ncclComm* const comm = batch.comm;
        comm->launching.push_back(std::move(batch));
        comm->begin_settling();
    }
    return ncclInProgress;
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    if (type != ncclChar) return ncclInvalidArgument;
    return add(comm, stream, {{from, nullptr, count, peer}});
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    if (type != ncclChar) return ncclInvalidArgument;
    return add(comm, stream, {{nullptr, to, count, peer}});
}

ncclResult_t ncclAllGather(const void* mine, void* all, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    if (type != ncclChar) return ncclInvalidArgument;
    std::vector<Message> messages;
    for (int peer = 0; peer < comm->world; ++peer) {
        char* const part = static_cast<char*>(all) + static_cast<std::size_t>(peer) * count;
        if (peer == comm->rank) {
            messages.push_back({mine, part, count, peer});
            continue;
        }
        messages.push_back({nullptr, part, count, peer});
        messages.push_back({mine, nullptr, count, peer});
    }
    return add_alone(comm, stream, std::move(messages));
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
    if (type != ncclChar) return ncclInvalidArgument;
    std::vector<Message> messages;
    if (comm->rank != root) messages.push_back({nullptr, to, count, root});
    for (int peer = 0; comm->rank == root && peer < comm->world; ++peer) {
        if (peer != root) messages.push_back({from, nullptr, count, peer});
    }
    return add_alone(comm, stream, std::move(messages));
}

}  // extern "C"
