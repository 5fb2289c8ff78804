#pragma once
// strata/comm/impl/mpi_watchdog.ipp - asking ranks what they do, and the last line of a job.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <strata/comm/mpi_watchdog.hpp>

namespace strata::comm {

STRATA_INLINE MpiWatchdog::MpiWatchdog(MPI_Comm ranks, const CollectiveLog& log, bool may_ask,
                                       std::chrono::milliseconds timeout, std::chrono::milliseconds answer_timeout)
    : log_{log}, may_ask_{may_ask}, timeout_ms_{timeout.count()}, answer_timeout_{answer_timeout} {
    MPI_Comm_rank(ranks, &rank_);
    MPI_Comm_size(ranks, &world_);
    if (may_ask_) {
        if (MPI_Comm_dup(ranks, &comm_) != MPI_SUCCESS ||
            MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN) != MPI_SUCCESS)
            throw Error{Errc::rank_failed, "MPI_Comm_dup failed", "look for the first error line of the other ranks"};
    }
    thread_ = std::thread{[this] { run(); }};
}

STRATA_INLINE MpiWatchdog::~MpiWatchdog() { stop(); }

STRATA_INLINE void MpiWatchdog::stop() noexcept {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

STRATA_INLINE void MpiWatchdog::leave() noexcept {
    stop();
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

STRATA_INLINE void MpiWatchdog::run() {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds interval{100};
    constexpr Clock::duration most_between_looks = std::chrono::seconds{1};
    std::uint64_t watched = 0;
    Clock::duration waited{0};
    Clock::time_point last_look = Clock::now();
    std::unique_lock lock{mutex_};
    while (!stopping_) {
        wake_.wait_for(lock, interval);
        if (stopping_) return;
        lock.unlock();
        answer_questions();
        const CollectiveRecord mine = log_.latest();
        // Time in which this thread did not run either does not count: the job was suspended.
        const Clock::time_point now = Clock::now();
        const Clock::duration since = std::min(now - last_look, most_between_looks);
        last_look = now;
        waited = mine.running != 0 && mine.number == watched ? waited + since : Clock::duration{0};
        watched = mine.number;
        if (mine.running != 0 && waited >= std::chrono::milliseconds{timeout_ms_}) judge(mine);
        lock.lock();
    }
}

STRATA_INLINE void MpiWatchdog::send(const Message& message, int peer, int tag) {
    Sent& sent = sent_.emplace_back(Sent{message});
    MPI_Isend(&sent.message, sizeof sent.message, MPI_BYTE, peer, tag, comm_, &sent.request);
}

STRATA_INLINE std::optional<MpiWatchdog::Message> MpiWatchdog::receive(int tag, int& peer) {
    int arrived = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &arrived, &status) != MPI_SUCCESS || arrived == 0) return std::nullopt;
    Message message;
    peer = status.MPI_SOURCE;
    if (MPI_Recv(&message, sizeof message, MPI_BYTE, peer, tag, comm_, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return std::nullopt;
    return message;
}

STRATA_INLINE void MpiWatchdog::answer_questions() {
    if (!may_ask_) return;
    int peer = 0;
    while (const auto question = receive(question_tag, peer)) {
        send({question->question, question->number, log_.numbered(question->number), log_.latest()}, peer, answer_tag);
    }
    sent_.remove_if([](Sent& sent) {
        int done = 0;
        return MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
    });
}

STRATA_INLINE bool MpiWatchdog::still_in(const CollectiveRecord& mine) const {
    const CollectiveRecord now = log_.latest();
    return now.number == mine.number && now.running != 0;
}

STRATA_INLINE std::vector<PeerState> MpiWatchdog::ask_all(const CollectiveRecord& mine) {
    std::vector<PeerState> peers;
    if (!may_ask_) return peers;
    ++question_;
    for (int rank = 0; rank < world_; ++rank) {
        if (rank == rank_) continue;
        peers.push_back({.rank = rank, .answered = false, .same = {}, .latest = {}});
        send({question_, mine.number, {}, {}}, rank, question_tag);
    }
    const auto until = std::chrono::steady_clock::now() + answer_timeout_;
    std::size_t silent = peers.size();
    while (silent > 0 && !stopping_ && still_in(mine) && std::chrono::steady_clock::now() < until) {
        answer_questions();
        int peer = 0;
        while (const auto answer = receive(answer_tag, peer)) {
            PeerState& state = peers[static_cast<std::size_t>(peer < rank_ ? peer : peer - 1)];
            if (answer->question != question_ || state.answered) continue;
            state = {.rank = peer, .answered = true, .same = answer->same, .latest = answer->latest};
            --silent;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return peers;
}

STRATA_INLINE void MpiWatchdog::judge(const CollectiveRecord& mine) {
    const auto now = std::chrono::steady_clock::now();
    if (stalled_in_ != mine.number) {
        stalled_in_ = mine.number;
        stalled_since_ = now;
    }
    const std::vector<PeerState> peers = ask_all(mine);
    const bool lower_speaks = std::any_of(peers.begin(), peers.end(), [&](const PeerState& peer) {
        return peer.rank < rank_ && has_arrived(peer, mine) && peer.latest.number == mine.number &&
               peer.latest.running != 0;
    });
    if (lower_speaks && now - stalled_since_ < answer_timeout_) return;
    if (stopping_ || !still_in(mine)) return;  // it ended while the ranks were asked

    std::fprintf(stderr, "rank %d/%d: %s\n", rank_, world_, explain_stall(log_.latest(), peers).what());
    std::fflush(stderr);
    if (may_ask_) MPI_Abort(comm_, 1);
    std::_Exit(1);  // without MPI_THREAD_MULTIPLE this thread may not call MPI; mpirun ends the others
}

}  // namespace strata::comm
