#pragma once
// strata/comm/impl/channel.ipp - the queue behind a Channel: one thread that sleeps while there is nothing to do.

#include <cassert>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include <strata/comm/channel.hpp>
#include <strata/comm/wait_listener.hpp>

namespace strata::comm::detail {

STRATA_INLINE OperationQueue::OperationQueue(bool threaded, Hooks hooks)
    : threaded_{threaded}, hooks_{std::move(hooks)}, exceptions_at_start_{std::uncaught_exceptions()} {
    if (threaded_) thread_ = std::thread{[this] { run(); }};
}

STRATA_INLINE OperationQueue::~OperationQueue() {
    if (!threaded_) return;
    std::unique_lock lock{mutex_};
    if (std::uncaught_exceptions() > exceptions_at_start_ && finished_ < posted_) {
        // The other ranks wait for operations that never come now; what they have begun together may still end well.
        const bool dropped = !waiting_.empty();
        waiting_.clear();
        finished_something_.wait_for(lock, std::chrono::seconds{dropped ? 0 : 1},
                                     [this] { return finished_ == posted_; });
        if (finished_ < posted_ && hooks_.interrupt) hooks_.interrupt();
    }
    closing_ = true;
    lock.unlock();
    posted_something_.notify_one();
    thread_.join();
}

STRATA_INLINE void OperationQueue::execute(Operation& operation, std::exception_ptr& failure) noexcept {
    try {
        if (hooks_.label) hooks_.label(operation.name);
        operation.work();
    } catch (...) {
        failure = std::current_exception();
    }
    operation.work = nullptr;  // what it holds is given back before its ticket is done
    if (hooks_.label) hooks_.label({});
}

STRATA_INLINE std::uint64_t OperationQueue::post(std::string_view name, std::function<void()> work) {
    Operation operation{std::string{name}, std::move(work)};
    if (threaded_) {
        std::unique_lock lock{mutex_};
        const std::uint64_t number = ++posted_;
        if (failed_at_ != 0) {
            ++finished_;
            return number;
        }
        waiting_.push_back(std::move(operation));
        lock.unlock();
        posted_something_.notify_one();
        return number;
    }
    ++posted_;
    if (failed_at_ == 0) {
        execute(operation, failure_);
        if (failure_) failed_at_ = posted_;
    }
    finished_ = posted_;
    return posted_;
}

STRATA_INLINE void OperationQueue::run() {
    is_channels_thread() = true;
    std::unique_lock lock{mutex_};
    while (true) {
        posted_something_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        Operation operation = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        std::exception_ptr failure;
        execute(operation, failure);
        lock.lock();
        ++finished_;
        if (failure) {
            failure_ = failure;
            failed_at_ = finished_;
            std::deque<Operation> dropped;
            dropped.swap(waiting_);
            lock.unlock();
            dropped.clear();  // what they hold may take its time to go
            lock.lock();
            finished_ = posted_;
        }
        finished_something_.notify_all();
    }
}

STRATA_INLINE void OperationQueue::wait(std::uint64_t number) {
    assert(std::this_thread::get_id() != thread_.get_id() && "an operation waits for its own channel");
    std::unique_lock lock{mutex_};
    const ForChannel stands;
    finished_something_.wait(lock, [&] { return finished_ >= number; });
    if (failed_at_ != 0 && number >= failed_at_) std::rethrow_exception(failure_);
}

STRATA_INLINE bool OperationQueue::done(std::uint64_t number) const {
    const std::lock_guard lock{mutex_};
    return finished_ >= number;
}

STRATA_INLINE void OperationQueue::drain() {
    std::unique_lock lock{mutex_};
    const ForChannel stands;
    finished_something_.wait(lock, [this] { return finished_ == posted_; });
}

inline std::mutex channel_turns_mutex;
inline std::map<const void*, OperationQueue*> channel_turns;  // who posted last, by communicator

STRATA_INLINE void ChannelTurns::take(const void* comm, OperationQueue& queue) {
    OperationQueue* before = nullptr;
    {
        const std::lock_guard lock{channel_turns_mutex};
        before = std::exchange(channel_turns[comm], &queue);
    }
    if (before != nullptr && before != &queue) before->drain();
}

STRATA_INLINE void ChannelTurns::settle(const void* comm) {
    OperationQueue* last = nullptr;
    {
        const std::lock_guard lock{channel_turns_mutex};
        const auto found = channel_turns.find(comm);
        if (found != channel_turns.end()) last = found->second;
    }
    if (last != nullptr && !last->is_running_me()) last->drain();
}

STRATA_INLINE void ChannelTurns::give_up(const void* comm, const OperationQueue& queue) {
    const std::lock_guard lock{channel_turns_mutex};
    const auto found = channel_turns.find(comm);
    if (found != channel_turns.end() && found->second == &queue) channel_turns.erase(found);
}

STRATA_INLINE std::uint64_t OperationQueue::posted() const {
    const std::lock_guard lock{mutex_};
    return posted_;
}

}  // namespace strata::comm::detail
