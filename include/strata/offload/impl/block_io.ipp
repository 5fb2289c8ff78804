#pragma once
// strata/offload/impl/block_io.ipp - the two engines behind BlockIo.

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <liburing.h>
#include <unistd.h>

#include <strata/offload/block_io.hpp>

namespace strata::offload {

namespace detail {

/// The part of a transfer that is one system call, or several when the system does less than it was asked to.
struct IoBlock {
    Transfer* transfer = nullptr;
    std::byte* data = nullptr;
    std::uint64_t offset = 0;
    std::size_t length = 0;  // that is missing
    int error = 0;
    bool ended = false;

    /// How many bytes to ask for next; 0 when a test wants this block to fail.
    std::size_t next_length(const IoFaults& faults) {
        if (!faults.block) return length;
        const std::int64_t answer = faults.block(transfer->direction, offset, length);
        if (answer < 0) error = static_cast<int>(-answer);
        return answer < 0 ? 0 : std::min(length, static_cast<std::size_t>(answer));
    }

    /// Takes in what a system call returned (bytes, or a negative errno); true when the block is over.
    bool advance(std::int64_t result) noexcept {
        if (result == -EINTR || result == -EAGAIN) return false;
        if (result < 0) {
            error = static_cast<int>(-result);
            return true;
        }
        // Direct I/O goes on at a multiple only; what was done beyond it is done again.
        const std::size_t done = static_cast<std::size_t>(result) / io_alignment * io_alignment;
        if (done == 0) {
            if (transfer->direction == IoDirection::read) {
                ended = true;
            } else {
                error = EIO;
            }
            return true;
        }
        data += done;
        offset += done;
        length -= done;
        return length == 0;
    }
};

inline std::vector<IoBlock> blocks_of(Transfer& transfer, std::size_t block_bytes) {
    std::vector<IoBlock> blocks;
    const std::size_t size = transfer.bytes.size();
    for (std::size_t at = 0; at < size;) {
        const std::size_t left = size - at;
        // A small rest goes with the block before it: a window's 4 KiB seal is not worth a request of its own.
        const std::size_t length = left < block_bytes + block_bytes / 2 ? left : block_bytes;
        blocks.push_back({.transfer = &transfer,
                          .data = transfer.bytes.data() + at,
                          .offset = transfer.offset + at,
                          .length = length});
        at += length;
    }
    transfer.finished = false;
    transfer.error = 0;
    transfer.ended = false;
    transfer.open_blocks = blocks.size();
    return blocks;
}

/// Notes a block that is over; true when it was its transfer's last.
inline bool close_block(const IoBlock& block) noexcept {
    Transfer& transfer = *block.transfer;
    if (block.error != 0 && transfer.error == 0) transfer.error = block.error;
    transfer.ended = transfer.ended || block.ended;
    if (--transfer.open_blocks > 0) return false;
    transfer.finished = true;
    return true;
}

[[noreturn]] inline void throw_uring_error(int error_number, const char* action) {
    throw Error{Errc::io_failed,
                std::string{"io_uring cannot "} + action + ": " + std::generic_category().message(error_number),
                "allow io_uring for this process, or let strata use threads (IoEngine::threads)"};
}

/// Returns 0 or an errno. Completions are noted when the thread enters the kernel anyway, where the kernel knows how.
inline int init_ring(::io_uring& ring, unsigned depth) noexcept {
    int result = ::io_uring_queue_init(depth, &ring, IORING_SETUP_CLAMP | IORING_SETUP_COOP_TASKRUN);
    if (result == -EINVAL) result = ::io_uring_queue_init(depth, &ring, IORING_SETUP_CLAMP);
    return -result;
}

class UringIo final : public BlockIo {
public:
    explicit UringIo(const IoOptions& options) : options_{options} {
        if (const int error = init_ring(ring_, options.queue_depth); error != 0) throw_uring_error(error, "start");
        blocks_.resize(ring_.sq.ring_entries);
        for (IoBlock& block : blocks_) free_.push_back(&block);
    }
    ~UringIo() override {
        try {
            while (in_flight_ > 0) reap(true);
        } catch (const Error&) {  // the ring is broken: closing it ends what it holds, on pages the kernel keeps
        }
        ::io_uring_queue_exit(&ring_);
    }

    void submit(Transfer& transfer) override {
        for (const IoBlock& block : blocks_of(transfer, options_.block_bytes)) waiting_.push_back(block);
        ++in_flight_;
        push();
    }
    void poll() override { reap(false); }
    void wait_one() override {
        for (const std::size_t before = in_flight_; in_flight_ == before;) reap(true);
    }
    [[nodiscard]] IoEngine engine() const noexcept override { return IoEngine::uring; }

private:
    /// Fills the ring with blocks that wait, and hands the ring to the kernel.
    void push(unsigned wait_for = 0) {
        while (!waiting_.empty() && !free_.empty()) {
            IoBlock* const block = free_.back();
            free_.pop_back();
            *block = waiting_.front();
            waiting_.pop_front();
            prepare(*block);
        }
        const int result = ::io_uring_submit_and_wait(&ring_, wait_for);
        // Interrupted, or short of kernel memory: what was not taken stays in the ring and goes with the next call.
        if (result < 0 && result != -EAGAIN && result != -EBUSY && result != -EINTR) {
            throw_uring_error(-result, "take a request");
        }
    }

    void prepare(IoBlock& block) {
        ::io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_);  // as many entries as blocks: never null
        const auto length = static_cast<unsigned>(block.next_length(options_.faults));
        if (length == 0) {
            ::io_uring_prep_nop(entry);
        } else if (block.transfer->direction == IoDirection::read) {
            ::io_uring_prep_read(entry, block.transfer->descriptor, block.data, length, block.offset);
        } else {
            ::io_uring_prep_write(entry, block.transfer->descriptor, block.data, length, block.offset);
        }
        ::io_uring_sqe_set_data(entry, &block);
    }

    void reap(bool wait) {
        if (wait && ::io_uring_cq_ready(&ring_) == 0) push(1);
        bool again = false;
        ::io_uring_cqe* entry = nullptr;
        while (::io_uring_peek_cqe(&ring_, &entry) == 0) {
            auto* const block = static_cast<IoBlock*>(::io_uring_cqe_get_data(entry));
            const std::int64_t result = entry->res;
            ::io_uring_cqe_seen(&ring_, entry);
            again = true;
            if (block->error == 0 && !block->advance(result)) {
                waiting_.push_front(*block);
            } else if (close_block(*block)) {
                --in_flight_;
            }
            free_.push_back(block);
        }
        if (again && !waiting_.empty()) push();
    }

    IoOptions options_;
    ::io_uring ring_{};
    std::vector<IoBlock> blocks_;  // what the kernel has, at most
    std::vector<IoBlock*> free_;
    std::deque<IoBlock> waiting_;
};

class ThreadIo final : public BlockIo {
public:
    explicit ThreadIo(const IoOptions& options) : options_{options} {
        for (unsigned i = 0; i < std::max(1U, options.threads); ++i) threads_.emplace_back([this] { work(); });
    }
    ~ThreadIo() override {
        while (in_flight_ > 0) wait_one();
        {
            const std::lock_guard lock{mutex_};
            stop_ = true;
        }
        work_arrived_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    void submit(Transfer& transfer) override {
        {
            const std::lock_guard lock{mutex_};
            for (const IoBlock& block : blocks_of(transfer, options_.block_bytes)) waiting_.push_back(block);
        }
        ++in_flight_;
        work_arrived_.notify_all();
    }
    void poll() override {
        const std::lock_guard lock{mutex_};
        take_done();
    }
    void wait_one() override {
        std::unique_lock lock{mutex_};
        for (const std::size_t before = in_flight_; in_flight_ == before;) {
            block_done_.wait(lock, [this] { return !done_.empty(); });
            take_done();
        }
    }
    [[nodiscard]] IoEngine engine() const noexcept override { return IoEngine::threads; }

private:
    void take_done() {
        for (const IoBlock& block : done_) {
            if (close_block(block)) --in_flight_;
        }
        done_.clear();
    }

    void work() {
        std::unique_lock lock{mutex_};
        while (true) {
            work_arrived_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            IoBlock block = waiting_.front();
            waiting_.pop_front();
            lock.unlock();
            for (bool over = false; !over;) {
                const std::size_t length = block.next_length(options_.faults);
                over = length == 0 || block.advance(call(block, length));
            }
            lock.lock();
            done_.push_back(block);
            block_done_.notify_one();
        }
    }

    static std::int64_t call(const IoBlock& block, std::size_t length) noexcept {
        const auto offset = static_cast<::off_t>(block.offset);
        const int descriptor = block.transfer->descriptor;
        const ::ssize_t result = block.transfer->direction == IoDirection::read
                                     ? ::pread(descriptor, block.data, length, offset)
                                     : ::pwrite(descriptor, block.data, length, offset);
        return result < 0 ? -errno : result;
    }

    IoOptions options_;
    std::mutex mutex_;
    std::condition_variable work_arrived_;
    std::condition_variable block_done_;
    std::deque<IoBlock> waiting_;
    std::vector<IoBlock> done_;
    bool stop_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace detail

STRATA_INLINE bool has_uring() noexcept {
    static const bool has = [] {
        ::io_uring ring{};
        if (detail::init_ring(ring, 4) != 0) return false;
        ::io_uring_queue_exit(&ring);
        return true;
    }();
    return has;
}

STRATA_INLINE std::unique_ptr<BlockIo> make_block_io(const IoOptions& options) {
    OptionCheck check;
    options.check(check);
    check.finish();
    const bool uring = options.engine == IoEngine::uring || (options.engine == IoEngine::automatic && has_uring());
    if (uring) return std::make_unique<detail::UringIo>(options);
    return std::make_unique<detail::ThreadIo>(options);
}

}  // namespace strata::offload
