#pragma once
// tests/support/nccl_on_host.hpp - the CUDA runtime and NCCL, as far as NcclComm calls them, on host memory and MPI.
//
// nccl_on_host.cpp defines their functions; a test links it instead of their libraries. It is strict where the real
// ones are lenient, so that what is forgotten shows without a GPU:
//   * nothing that was put on a stream happens before the stream is queried, and then not at the first query;
//   * what NCCL is told in a group reaches the stream only after ncclCommGetAsyncError has been asked twice;
//   * a stream, memory and NCCL may only be used while the calling thread's current GPU is theirs.
// Device memory is ordinary memory, so a test fills and reads it itself.

#include <atomic>
#include <vector>

#include <nccl.h>

namespace nccl_on_host {

/// The GPUs of a host, by number: `count` of them from `first`.
std::vector<int> gpus(int first, int count);

/// What this process sees, and its faults; the defaults are all of its host's 64 GPUs, and none.
struct Faults {
    std::vector<int> visible = gpus(0, 64);               ///< CUDA's numbers are places in this list; empty: no driver
    std::atomic<ncclResult_t> async_error = ncclSuccess;  ///< what ncclCommGetAsyncError reports of every communicator
    bool never_connects = false;                          ///< ncclCommInitRankConfig goes on for ever
    std::atomic<bool> abort_hangs = false;                ///< ncclCommAbort goes on for ever
};
Faults& faults() noexcept;

/// What this process has done so far.
struct Counts {
    int connected = 0;  ///< communicators
    int destroyed = 0;  ///< by ncclCommDestroy, after ncclCommFinalize
    int aborted = 0;
    int groups = 0;            ///< of operations that were given to NCCL at once, and that it has put on a stream
    int pieces_of_memory = 0;  ///< that are allocated now
    int streams = 0;           ///< that exist now
};
Counts counts() noexcept;

}  // namespace nccl_on_host
