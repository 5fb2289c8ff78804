#pragma once
// strata/comm/channel.hpp - Channel: a thread that runs collectives in the order they were posted.

#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include <strata/comm/communicator.hpp>
#include <strata/core/inline.hpp>

namespace strata::comm {

namespace detail {

/// The queue and the thread behind every Channel.
class OperationQueue {
public:
    /// What the queue may ask of the communicator; may be empty.
    struct Hooks {
        std::function<void(std::string_view)> label;
        std::function<void()> interrupt;
    };
    OperationQueue(bool threaded, Hooks hooks);
    ~OperationQueue();
    OperationQueue(const OperationQueue&) = delete;
    OperationQueue& operator=(const OperationQueue&) = delete;

    std::uint64_t post(std::string_view name, std::function<void()> work);
    void wait(std::uint64_t number);
    [[nodiscard]] bool done(std::uint64_t number) const;
    [[nodiscard]] std::uint64_t posted() const;
    /// Returns when nothing is left to do, whether it failed or not.
    void drain();
    /// Whether the calling thread is the queue's own, which runs an operation.
    [[nodiscard]] bool is_running_me() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }

private:
    struct Operation {
        std::string name;
        std::function<void()> work;
    };
    void run();
    void execute(Operation& operation, std::exception_ptr& failure) noexcept;

    const bool threaded_;
    const Hooks hooks_;
    const int exceptions_at_start_;
    mutable std::mutex mutex_;
    std::condition_variable posted_something_;
    std::condition_variable finished_something_;
    std::deque<Operation> waiting_;
    std::uint64_t posted_ = 0;
    std::uint64_t finished_ = 0;
    std::uint64_t failed_at_ = 0;  // number of the operation that threw; 0: none
    std::exception_ptr failure_;
    bool closing_ = false;
    std::thread thread_;  // the last member: everything else is there when it starts
};

/// Which channel of a communicator may use it: several engines of one program have a channel each, and two threads must not
/// be inside of one communicator. Who wants to post waits for what another has posted before, in the order of the program,
/// which is the same on all ranks.
class ChannelTurns {
public:
    ///   comm  known by its address
    static void take(const void* comm, OperationQueue& queue);
    /// Waits for what was posted last, unless it is the channel's thread that asks.
    static void settle(const void* comm);
    static void give_up(const void* comm, const OperationQueue& queue);
};

}  // namespace detail

/// Returns when no channel of a communicator has anything under way: for whoever calls it directly, after a forward pass
/// that gathers ahead, say. What is called through AnyComm, a session's comm() among it, waits by itself. Local.
template <Communicator Comm>
void settle(Comm& comm) {
    if (comm.world() > 1) detail::ChannelTurns::settle(&host_of(comm));
}

/// One operation that was posted to a Channel. Copies are the same ticket; none outlives its channel.
class Ticket {
public:
    Ticket() = default;

    /// Returns when the operation is done; a ticket of no operation is done. Throws what the operation threw, or
    /// what an earlier one threw: after that none is run.
    void wait() const {
        if (queue_ != nullptr) queue_->wait(number_);
    }

    /// Whether wait() would return or throw at once.
    [[nodiscard]] bool done() const { return queue_ == nullptr || queue_->done(number_); }

    /// 1, 2, ... in the order of posting.
    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

private:
    template <Communicator Comm>
    friend class Channel;
    Ticket(detail::OperationQueue& queue, std::uint64_t number) : queue_{&queue}, number_{number} {}
    detail::OperationQueue* queue_ = nullptr;
    std::uint64_t number_ = 0;
};

/// Runs collectives on a thread of its own, one after the other, in exactly the order they were posted.
///
/// While it has work, nobody else may be inside the communicator: either all collectives go through the channel, or
/// wait() comes first. (MpiComm notices and throws comm_busy.) Ranks must post the same operations in the same order.
/// Several channels of one communicator take turns: post() and wait() wait for what another one has under way.
///
/// In a world of one there is no thread: post() runs the operation at once, because there is nothing to wait for and a
/// change of threads costs more than the operation: an empty post and wait takes 0.03 us, with a thread 7 to 15.
/// Everything below holds all the same.
///
///   comm  outlives the channel
template <Communicator Comm>
class Channel {
public:
    using Ticket = comm::Ticket;

    explicit Channel(Comm& comm)
        : shared_{comm.world() > 1 ? static_cast<const void*>(&host_of(comm)) : nullptr},
          queue_{comm.world() > 1, hooks_of(comm)} {}

    /// Waits for everything that was posted. After a failure, and while an exception unwinds the stack, what has
    /// not begun is dropped; a collective that has begun gets one second and is then interrupted, if Comm can do that
    /// (MpiComm can, and throws rank_failed from then on). Buffers of operations may be freed afterwards.
    ~Channel() {
        if (shared_ != nullptr) detail::ChannelTurns::give_up(shared_, queue_);
    }
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    /// Hands an operation to the thread and returns. Never throws what the operation throws: the ticket does.
    ///
    ///   name  the same on every rank: ranks that mean different things are told so by it, and the watchdog uses it
    ///   work  void(); calls collectives of the communicator, and nothing of this channel. Destroyed before its
    ///         ticket is done, on the channel's thread; must be copyable
    /// Local. Several threads may post, but then they must agree on the order with all other ranks.
    template <std::invocable Work>
    Ticket post(std::string_view name, Work&& work) {
        take_turn();
        return Ticket{queue_, queue_.post(name, std::function<void()>{std::forward<Work>(work)})};
    }

    /// post() and wait(); returns what `work` returned.
    template <std::invocable Work>
    std::invoke_result_t<Work&> run(std::string_view name, Work&& work) {
        if constexpr (std::is_void_v<std::invoke_result_t<Work&>>) {
            post(name, std::ref(work)).wait();
        } else {
            std::optional<std::invoke_result_t<Work&>> result;
            post(name, [&] { result.emplace(work()); }).wait();
            return *std::move(result);
        }
    }

    /// Returns when everything posted so far is done, here and on other channels of the communicator; throws like
    /// Ticket::wait().
    void wait() {
        take_turn();
        queue_.wait(queue_.posted());
    }

private:
    void take_turn() {
        if (shared_ != nullptr) detail::ChannelTurns::take(shared_, queue_);
    }

    static detail::OperationQueue::Hooks hooks_of(Comm& comm) {
        detail::OperationQueue::Hooks hooks;
        if constexpr (requires { comm.label(std::string_view{}); })
            hooks.label = [&comm](std::string_view name) { comm.label(name); };
        if constexpr (requires { comm.interrupt(); }) hooks.interrupt = [&comm] { comm.interrupt(); };
        return hooks;
    }
    const void* shared_;  // what channels of these ranks are known by; nullptr in a world of one
    detail::OperationQueue queue_;
};

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/channel.ipp>
#endif
