#pragma once
// strata/comm/wait_listener.hpp - WaitListener: told when a process stands still for other ranks, and when it goes on.

#include <mutex>

namespace strata::comm {

/// One of a process listens, while a ListenToWaits lives. Its calls come in turns, on whichever thread makes the difference, and
/// no two at a time; they use no communicator, whose locks may be held.
///
/// A process stands still for others while the thread that trains is inside of a collective, or waits for a Channel that is inside of
/// one. What a channel's operation does besides, such as reading a shard from disk, is no such time. Told by what counts collectives,
/// comm::CollectiveLog: MpiComm, and with it NcclComm. A communicator of one's own tells with an InCollective.
class WaitListener {
public:
    virtual void wait_begins() noexcept = 0;
    virtual void wait_ends() noexcept = 0;

protected:
    WaitListener() = default;
    WaitListener(const WaitListener&) = default;
    WaitListener& operator=(const WaitListener&) = default;
    ~WaitListener() = default;
};

namespace detail {

/// Where the threads of this process are. Costs an uncontended lock a change.
class WaitState {
public:
    enum Where : unsigned char { in_collective, for_channel, in_channels_collective };

    void enter(Where where) { change(where, 1); }
    void leave(Where where) { change(where, -1); }

    /// Returns who listened before.
    WaitListener* listen(WaitListener* listener) {
        const std::lock_guard lock{mutex_};
        WaitListener* const before = listener_;
        listener_ = listener;
        return before;
    }

private:
    [[nodiscard]] bool stands() const noexcept {
        return count_[in_collective] > 0 || (count_[for_channel] > 0 && count_[in_channels_collective] > 0);
    }
    void change(Where where, int by) {
        const std::lock_guard lock{mutex_};
        const bool stood = stands();
        count_[where] += by;
        if (listener_ == nullptr || stands() == stood) return;
        if (stood)
            listener_->wait_ends();
        else
            listener_->wait_begins();
    }

    std::mutex mutex_;
    WaitListener* listener_ = nullptr;
    int count_[3] = {0, 0, 0};
};

inline WaitState& wait_state() {
    static WaitState state;
    return state;
}

/// Whether the calling thread is a channel's.
inline bool& is_channels_thread() noexcept {
    thread_local bool is = false;
    return is;
}

class In {
public:
    explicit In(WaitState::Where where) : where_{where} { wait_state().enter(where_); }
    ~In() { wait_state().leave(where_); }
    In(const In&) = delete;
    In& operator=(const In&) = delete;

private:
    WaitState::Where where_;
};

/// The calling thread waits for what was posted to a channel.
class ForChannel : In {
public:
    ForChannel() : In{WaitState::for_channel} {}
};

}  // namespace detail

/// While it lives, the calling thread is inside of a collective.
class InCollective : detail::In {
public:
    InCollective()
        : In{detail::is_channels_thread() ? detail::WaitState::in_channels_collective
                                          : detail::WaitState::in_collective} {}
};

/// While it lives, the listener is told; whoever listened before is told again afterwards.
class ListenToWaits {
public:
    ///   listener  outlives it. Made and destroyed outside of collectives
    explicit ListenToWaits(WaitListener& listener) : before_{detail::wait_state().listen(&listener)} {}
    ~ListenToWaits() { detail::wait_state().listen(before_); }
    ListenToWaits(const ListenToWaits&) = delete;
    ListenToWaits& operator=(const ListenToWaits&) = delete;

private:
    WaitListener* before_;
};

}  // namespace strata::comm
