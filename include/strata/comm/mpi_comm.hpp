#pragma once
// strata/comm/mpi_comm.hpp - MpiComm: all ranks of an MPI job.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The C++ bindings were removed from MPI 3.0; Open MPI still offers them, with warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <strata/comm/collective_log.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/comm/mpi_watchdog.hpp>
#include <strata/comm/shared_windows.hpp>
#include <strata/comm/stall.hpp>
#include <strata/core/bf16.hpp>
#include <strata/core/inline.hpp>

namespace strata::comm {

/// How an MpiComm works; the same on every rank.
struct MpiOptions {
    /// Longer than this in one collective, and the watchdog ends the job and says who is missing.
    std::chrono::milliseconds collective_timeout = std::chrono::minutes{10};

    /// A rank that does not tell the watchdog within this time what it does counts as one that does not answer.
    std::chrono::milliseconds answer_timeout = std::chrono::seconds{5};

    /// Ranks that are all on one host exchange through shared memory; false: always through MPI.
    bool shared_memory = true;

    /// One window of shared memory; each rank has two. A multiple of 64.
    std::size_t window_bytes = std::size_t{1} << 20;

    /// The largest single MPI message, 1 .. INT_MAX: MPI counts are int, so longer buffers travel in pieces.
    std::size_t piece_bytes = std::size_t{1} << 30;
};

/// MPI_COMM_WORLD behind the Communicator concept; buffers of any size.
///
/// When all ranks are on one host, bytes go through shared memory in windows that stay in the cache; otherwise, and
/// when shared memory cannot be had, through MPI messages. transport() says which. Sums are formed in rank order on
/// both ways, so they have the same bits. Waiting yields and sleeps: there may be more ranks than cores.
///
/// Every collective has a number and a name. Ranks that call different ones under the same number are told so by
/// rank_mismatch at once on shared memory, by the watchdog on MPI (their messages never match).
class MpiComm {
public:
    /// Collective. Starts MPI unless the program has done so; the one that starts it also finalizes it.
    /// Throws rank_failed when MPI does not start or lacks MPI_THREAD_SERIALIZED.
    explicit MpiComm(const MpiOptions& options = {});

    /// While an exception unwinds the stack, and after interrupt(), MPI is left as it is: finalizing would wait for
    /// ranks that wait for this one. The process then ends without MPI_Finalize, upon which mpirun ends the job.
    ~MpiComm();
    MpiComm(const MpiComm&) = delete;
    MpiComm& operator=(const MpiComm&) = delete;

    [[nodiscard]] int rank() const noexcept { return rank_; }
    [[nodiscard]] int world() const noexcept { return world_; }
    void barrier();
    void broadcast(std::span<std::byte> bytes, int root);
    void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
    [[nodiscard]] std::vector<std::string> all_gather_varied(std::string_view mine);
    void reduce_scatter(std::span<const float> all, std::span<float> mine);
    void reduce_scatter(std::span<const bf16> all, std::span<bf16> mine);
    void reduce_scatter(std::span<const bf16> all, std::span<float> mine);
    void all_reduce_sum(std::span<double> values);
    [[noreturn]] void abort(int status) noexcept;

    /// A name for the collectives that follow, which must be the same on every rank and stands in the messages about
    /// them; empty for none. Channel sets it. Local.
    void label(std::string_view text) { log_.label(text); }

    /// See MpiOptions; counts for the collective that runs, too. Local, from any thread.
    void set_collective_timeout(std::chrono::milliseconds timeout) noexcept;

    /// What is done with the stacks of all ranks before the watchdog ends the job. Local, from any thread.
    void on_stall(StallHook hook);

    /// The collective that runs and all later ones throw rank_failed, within 0.1 s. Local, from any thread.
    void interrupt() noexcept { interrupted_ = true; }

    /// Counts a collective of these ranks that runs beside MPI, between their GPUs for example: while the result lives,
    /// the watchdog sees it like one of this communicator's own. Throws rank_failed after interrupt(), comm_busy.
    ///
    ///   bytes  the size all ranks must agree on; 0 where there is none
    [[nodiscard]] CollectiveLog::Running watch(std::string_view op, std::size_t bytes) { return begin(op, bytes); }

    /// The collective this rank is in, else its last one. Local, from any thread.
    [[nodiscard]] CollectiveRecord latest_collective() const { return log_.latest(); }

    /// "shared memory", or "MPI" with the reason: "MPI, because the ranks are on several hosts".
    [[nodiscard]] const std::string& transport() const noexcept { return transport_; }

private:
    void share_memory(const MpiOptions& options);
    [[nodiscard]] CollectiveLog::Running begin(std::string_view op, std::size_t bytes);
    template <class Fill, class Take>
    void exchange(const CollectiveRecord& what, std::size_t rounds, Fill&& fill, Take&& take);
    void send_to(int peer, std::span<const std::byte> bytes);
    void receive_from(int peer, std::span<std::byte> bytes);
    void wait_for_all(const CollectiveRecord& what);
    void broadcast_by_messages(const CollectiveRecord& what, std::span<std::byte> bytes, int root);
    void gather(const CollectiveRecord& what, std::span<const std::byte> mine, std::span<std::byte> all);
    template <class In, class Out>
    void sum_by_windows(const CollectiveRecord& what, std::span<const In> all, std::span<Out> mine);
    template <class In, class Out>
    void sum_by_messages(const CollectiveRecord& what, std::span<const In> all, std::span<Out> mine);
    template <class In, class Out>
    void sum_parts(std::span<const In> all, std::span<Out> mine);

    MPI_Comm comm_ = MPI_COMM_NULL;
    std::size_t piece_bytes_;
    int rank_ = 0;
    int world_ = 1;
    int largest_tag_ = 32767;
    int tag_ = 0;  // of the collective that runs: says what it is, so that different ones never match
    int exceptions_at_start_;
    bool finalizes_ = false;
    std::atomic<bool> interrupted_ = false;
    std::vector<MPI_Request> pending_;
    std::vector<std::byte> received_;  // parts of other ranks, one window at a time
    CollectiveLog log_;
    std::string transport_ = "MPI";
    std::optional<SharedMemory> memory_;
    std::optional<SharedWindows> windows_;
    std::optional<MpiWatchdog> watchdog_;  // none in a world of one
};

static_assert(Communicator<MpiComm>);

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/mpi_comm.ipp>
#endif
