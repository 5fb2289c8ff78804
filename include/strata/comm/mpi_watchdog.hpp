#pragma once
// strata/comm/mpi_watchdog.hpp - MpiWatchdog: ends a job whose ranks wait for a rank that does not come, and names it.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// The C++ bindings were removed from MPI 3.0; Open MPI still offers them, with warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <strata/comm/collective_log.hpp>
#include <strata/comm/stall.hpp>
#include <strata/core/inline.hpp>

namespace strata::comm {

/// A thread that looks 10 times a second how long this rank's collective has been running, and answers other ranks'
/// watchdogs when they ask what this rank does: also while its other threads sleep or compute.
///
/// After `timeout` in one collective it asks all ranks, prints one line on standard error, "rank 0/4: [ST2303] ...",
/// and ends the job with status 1. Of the ranks that wait in the same collective the lowest one speaks; another one
/// only when that one has stayed silent for `answer_timeout`. While the whole job is suspended no time passes.
/// With a hook (on_stall) all ranks that answer say what their threads do, between the line and the end.
class MpiWatchdog {
public:
    /// Collective over `ranks`, which is duplicated, when `may_ask`.
    ///
    ///   may_ask         MPI has MPI_THREAD_MULTIPLE; without it the line cannot say who is missing
    ///   timeout         of one collective
    ///   answer_timeout  after which a rank counts as one that does not answer
    /// Throws rank_failed.
    MpiWatchdog(MPI_Comm ranks, const CollectiveLog& log, bool may_ask, std::chrono::milliseconds timeout,
                std::chrono::milliseconds answer_timeout);

    /// Stops the thread. Local: what MPI holds is left to leave().
    ~MpiWatchdog();
    MpiWatchdog(const MpiWatchdog&) = delete;
    MpiWatchdog& operator=(const MpiWatchdog&) = delete;

    /// Stops the thread and gives back what MPI holds. Collective.
    void leave() noexcept;

    /// Counts for the collective that runs, too. Local.
    void set_timeout(std::chrono::milliseconds timeout) noexcept { timeout_ms_ = timeout.count(); }

    /// What is done before the job ends; empty: nothing. Local.
    void on_stall(StallHook hook) {
        const std::lock_guard lock{mutex_};
        hook_ = std::move(hook);
    }

private:
    struct Message {
        std::uint64_t question = 0;  // tells a late answer from one to the present question
        std::uint64_t number = 0;    // of the collective that is asked about
        CollectiveRecord same, latest;
    };
    struct Sent {
        std::string bytes;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    static constexpr int question_tag = 1;
    static constexpr int answer_tag = 2;
    static constexpr int stacks_question_tag = 3;  // by the rank that speaks; no bytes
    static constexpr int stacks_tag = 4;

    void run();
    void stop() noexcept;
    void send(std::string bytes, int peer, int tag);
    void send(const Message& message, int peer, int tag);
    [[nodiscard]] std::optional<std::string> receive_bytes(int tag, int& peer);
    [[nodiscard]] std::optional<Message> receive(int tag, int& peer);
    void answer_questions();
    [[nodiscard]] std::vector<std::string> ask_for_stacks(const std::vector<PeerState>& peers);
    void call_hook(const std::string& line, const std::vector<PeerState>& peers);
    [[nodiscard]] std::vector<PeerState> ask_all(const CollectiveRecord& mine);
    void judge(const CollectiveRecord& mine);
    [[nodiscard]] bool still_in(const CollectiveRecord& mine) const;

    const CollectiveLog& log_;
    bool may_ask_;
    std::atomic<std::int64_t> timeout_ms_;
    std::chrono::milliseconds answer_timeout_;
    MPI_Comm comm_ = MPI_COMM_NULL;
    int rank_ = 0;
    int world_ = 1;
    std::uint64_t question_ = 0;
    std::uint64_t stalled_in_ = 0;                         // the collective of the first judgement ...
    std::chrono::steady_clock::time_point stalled_since_;  // ... and its time
    std::chrono::steady_clock::time_point another_speaks_until_;
    std::list<Sent> sent_;  // messages MPI still reads from

    std::mutex mutex_;
    StallHook hook_;
    std::condition_variable wake_;
    std::atomic<bool> stopping_ = false;
    std::thread thread_;  // the last member: everything else is there when it starts
};

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/mpi_watchdog.ipp>
#endif
