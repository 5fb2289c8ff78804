#pragma once
// strata/datasets/byte_budget.hpp - how much memory several threads may use together for what they work on.

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace strata::datasets {

/// Hands out parts of a number of bytes and waits while too little is left. Thread-safe; local to a process.
///
/// Turns are taken in the order of asking, so that a large wish is not overtaken for ever. Whoever holds a part must
/// not ask for a second one, or wait for somebody who asks.
class ByteBudget {
public:
    ///   bytes  in all, >= 1
    explicit ByteBudget(std::int64_t bytes) : all_{std::max<std::int64_t>(bytes, 1)}, left_{all_} {}
    ByteBudget(const ByteBudget&) = delete;
    ByteBudget& operator=(const ByteBudget&) = delete;

    /// A part of the budget, given back when it goes.
    class Part {
    public:
        Part(const Part&) = delete;
        Part& operator=(const Part&) = delete;
        ~Part() { budget_.give_back(bytes_); }

    private:
        friend class ByteBudget;
        Part(ByteBudget& budget, std::int64_t bytes) : budget_{budget}, bytes_{bytes} {}
        ByteBudget& budget_;
        std::int64_t bytes_;
    };

    /// Waits until `bytes` are left and nobody asked earlier. A wish for more than there is in all gets all: such work
    /// is done alone.
    [[nodiscard]] Part take(std::int64_t bytes) {
        const std::int64_t wanted = std::clamp<std::int64_t>(bytes, 0, all_);
        std::unique_lock lock{mutex_};
        const std::uint64_t turn = asked_++;
        changed_.wait(lock, [&] { return turn == served_ && wanted <= left_; });
        ++served_;
        left_ -= wanted;
        lock.unlock();
        changed_.notify_all();  // the next in turn may fit as well
        return Part{*this, wanted};
    }

private:
    void give_back(std::int64_t bytes) {
        {
            const std::lock_guard lock{mutex_};
            left_ += bytes;
        }
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::int64_t all_;
    std::int64_t left_;
    std::uint64_t asked_ = 0;   // turns given out
    std::uint64_t served_ = 0;  // turns that are over
};

/// What is granted to pictures on their way from a store to their pixels: a quarter for files as they were read, the rest for
/// decoding. A file's part is taken before it is read and held until its pixels are there; because of the quarter, whoever
/// holds one may wait for a part of the rest.
struct DecodeMemory {
    ByteBudget files;
    ByteBudget pixels;

    ///   bytes  in all
    explicit DecodeMemory(std::int64_t bytes) : files{bytes / 4}, pixels{bytes - bytes / 4} {}
};

}  // namespace strata::datasets
