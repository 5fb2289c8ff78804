#pragma once
// strata/comm/impl/mpi_watchdog.ipp - asking ranks what they do, and the last line of a job.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>

#include <unistd.h>

#include <strata/comm/mpi_watchdog.hpp>
#include <strata/core/host_name.hpp>
#include <strata/core/thread_stacks.hpp>

namespace strata::comm {

namespace detail {

/// For all ranks' stacks together, and for what a program does with them.
inline constexpr std::chrono::seconds stacks_patience{10}, hook_patience{10};
/// Of one rank, in one message.
inline constexpr std::size_t most_of_stacks = std::size_t{1} << 20U;

inline std::string own_stacks() {
    std::string text =
        "on " + core::host_name() + ", process " + std::to_string(::getpid()) + "\n" + core::thread_stacks();
    text.resize(std::min(text.size(), most_of_stacks));
    return text;
}

}  // namespace detail

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

STRATA_INLINE void MpiWatchdog::send(std::string bytes, int peer, int tag) {
    Sent& sent = sent_.emplace_back(Sent{std::move(bytes)});
    MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE, peer, tag, comm_, &sent.request);
}

STRATA_INLINE void MpiWatchdog::send(const Message& message, int peer, int tag) {
    std::string bytes(sizeof message, '\0');
    std::memcpy(bytes.data(), &message, sizeof message);
    send(std::move(bytes), peer, tag);
}

STRATA_INLINE std::optional<std::string> MpiWatchdog::receive_bytes(int tag, int& peer) {
    int arrived = 0;
    int count = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &arrived, &status) != MPI_SUCCESS || arrived == 0) return std::nullopt;
    if (MPI_Get_count(&status, MPI_BYTE, &count) != MPI_SUCCESS || count < 0) return std::nullopt;
    std::string bytes(static_cast<std::size_t>(count), '\0');
    peer = status.MPI_SOURCE;
    if (MPI_Recv(bytes.data(), count, MPI_BYTE, peer, tag, comm_, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return std::nullopt;
    return bytes;
}

STRATA_INLINE std::optional<MpiWatchdog::Message> MpiWatchdog::receive(int tag, int& peer) {
    const std::optional<std::string> bytes = receive_bytes(tag, peer);
    Message message;
    if (!bytes || bytes->size() != sizeof message) return std::nullopt;
    std::memcpy(&message, bytes->data(), sizeof message);
    return message;
}

STRATA_INLINE void MpiWatchdog::answer_questions() {
    if (!may_ask_) return;
    int peer = 0;
    while (const auto question = receive(question_tag, peer)) {
        send(Message{question->question, question->number, log_.numbered(question->number), log_.latest()}, peer,
             answer_tag);
    }
    while (receive_bytes(stacks_question_tag, peer)) {
        // The one that asks has the floor, and ends the job when it has said all.
        another_speaks_until_ = std::chrono::steady_clock::now() + detail::stacks_patience + detail::hook_patience;
        send(detail::own_stacks(), peer, stacks_tag);
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
        send(Message{question_, mine.number, {}, {}}, rank, question_tag);
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

STRATA_INLINE std::vector<std::string> MpiWatchdog::ask_for_stacks(const std::vector<PeerState>& peers) {
    std::vector<std::string> stacks(static_cast<std::size_t>(world_),
                                    may_ask_
                                        ? "it does not answer\n"
                                        : "it cannot be asked, because MPI was started without MPI_THREAD_MULTIPLE\n");
    std::size_t silent = 0;
    for (const PeerState& peer : peers) {
        if (!peer.answered) continue;
        send(std::string{}, peer.rank, stacks_question_tag);
        ++silent;
    }
    stacks[static_cast<std::size_t>(rank_)] = detail::own_stacks();
    const auto until = std::chrono::steady_clock::now() + detail::stacks_patience;
    while (silent > 0 && !stopping_ && std::chrono::steady_clock::now() < until) {
        answer_questions();
        int peer = 0;
        while (std::optional<std::string> text = receive_bytes(stacks_tag, peer)) {
            stacks[static_cast<std::size_t>(peer)] = std::move(*text);
            --silent;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    return stacks;
}

/// In a thread of its own, because a disk that hangs may be why the job does.
STRATA_INLINE void MpiWatchdog::call_hook(const std::string& line, const std::vector<PeerState>& peers) {
    struct Shared {
        std::mutex mutex;
        std::condition_variable done;
        bool is_done = false;
        std::string more;
    };
    StallHook hook;
    {
        const std::lock_guard lock{mutex_};
        hook = hook_;
    }
    if (!hook) return;
    const auto shared = std::make_shared<Shared>();
    std::thread{[shared, hook = std::move(hook), stall = Stall{line, ask_for_stacks(peers)}] {
        std::string more;
        try {
            more = hook(stall);
        } catch (const std::exception& failure) {
            more = failure.what();
        }
        const std::lock_guard lock{shared->mutex};
        shared->more = std::move(more);
        shared->is_done = true;
        shared->done.notify_all();
    }}.detach();
    std::unique_lock lock{shared->mutex};
    shared->done.wait_for(lock, detail::hook_patience, [&] { return shared->is_done; });
    if (!shared->more.empty()) std::fprintf(stderr, "rank %d/%d: %s\n", rank_, world_, shared->more.c_str());
    std::fflush(stderr);
}

STRATA_INLINE void MpiWatchdog::judge(const CollectiveRecord& mine) {
    const auto now = std::chrono::steady_clock::now();
    if (now < another_speaks_until_) return;
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
    if (std::chrono::steady_clock::now() < another_speaks_until_) return;
    if (stopping_ || !still_in(mine)) return;  // it ended while the ranks were asked

    const std::string line = explain_stall(log_.latest(), peers).what();
    std::fprintf(stderr, "rank %d/%d: %s\n", rank_, world_, line.c_str());
    std::fflush(stderr);
    call_hook(line, peers);
    if (may_ask_) MPI_Abort(comm_, 1);
    std::_Exit(1);  // without MPI_THREAD_MULTIPLE this thread may not call MPI; mpirun ends the others
}

}  // namespace strata::comm
