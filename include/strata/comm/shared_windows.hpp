#pragma once
// strata/comm/shared_windows.hpp - SharedWindows: ranks of one host pass bytes on through memory that all of them map.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <strata/comm/collective_log.hpp>
#include <strata/core/inline.hpp>

namespace strata::comm {

/// Anonymous memory that other processes of the host can map: it has no name in any folder, and is gone with the last
/// process that maps it, however that one ended.
class SharedMemory {
public:
    /// Zeroed and reserved: a later access cannot fail.
    ///
    ///   bytes  at most a quarter of the host's memory
    /// Local. Throws io_failed.
    [[nodiscard]] static SharedMemory create(std::size_t bytes);

    /// Maps what create() made in another process of the same user.
    /// Local. Throws io_failed when that process or its memory is not visible from this one.
    [[nodiscard]] static SharedMemory open(std::int64_t process, int file, std::size_t bytes);

    SharedMemory(SharedMemory&& other) noexcept;
    SharedMemory& operator=(SharedMemory&&) = delete;
    ~SharedMemory();

    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] int file() const noexcept { return file_; }
    void close_file() noexcept;  ///< when all ranks have mapped it

private:
    SharedMemory(int file, std::size_t bytes);
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    int file_ = -1;
};

namespace detail {

/// A number that only rises, and that other processes sleep on until it has. One cache line.
struct alignas(64) SharedCounter {
    std::atomic<std::uint32_t> value;
    std::atomic<std::uint32_t> sleepers;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(SharedCounter) == 64);

void raise(SharedCounter& counter) noexcept;

}  // namespace detail

/// Two windows a rank in SharedMemory, used in turn: a rank fills one while the others still read the other.
///
/// Nobody spins: a rank that waits sleeps on a futex. In front of every window stands the record of its collective, so
/// ranks that mean different things notice it at no cost and before any byte is used.
class SharedWindows {
public:
    /// Memory for `world` ranks; 2 * window_bytes a rank and 384 bytes more.
    [[nodiscard]] static std::size_t bytes_for(int world, std::size_t window_bytes) noexcept;

    ///   memory       bytes_for(world, window_bytes) bytes, zero when the first rank begins
    ///   interrupted  once true, whoever waits throws rank_failed within 0.1 s
    SharedWindows(std::byte* memory, int rank, int world, std::size_t window_bytes,
                  const std::atomic<bool>& interrupted);

    [[nodiscard]] std::size_t window_bytes() const noexcept { return window_bytes_; }

    /// The window that `rank` filled for the round that take() is called for.
    [[nodiscard]] const std::byte* window_of(int rank) const noexcept { return slot(rank, taken_) + header_bytes; }

    /// One collective: `rounds` times every rank fills its window and then reads all others'.
    ///
    ///   rounds  the same on every rank, >= 1
    ///   fill    (round, window) writes this rank's window
    ///   take    (round) reads what it needs by window_of()
    /// Collective. Throws rank_mismatch on all ranks when their records differ, rank_failed when interrupted.
    template <class Fill, class Take>
    void exchange(const CollectiveRecord& what, std::size_t rounds, Fill&& fill, Take&& take) {
        const auto publish = [&](std::size_t round) {
            wait_for_room(what);
            fill(round, slot(rank_, filled_) + header_bytes);
            std::memcpy(slot(rank_, filled_), &what, sizeof what);
            ++filled_;
            detail::raise(control(rank_)[0]);
        };
        publish(0);
        for (std::size_t round = 0; round < rounds; ++round) {
            if (round + 1 < rounds) publish(round + 1);  // ahead of the others, into the window they do not read
            wait_for_all(what);
            take(round);
            ++taken_;
            detail::raise(control(rank_)[1]);
        }
    }

private:
    static constexpr std::size_t header_bytes = 128;  // a CollectiveRecord, in whole cache lines
    static_assert(sizeof(CollectiveRecord) <= header_bytes);

    [[nodiscard]] detail::SharedCounter* control(int rank) const noexcept {  // [0] windows filled, [1] rounds taken
        return reinterpret_cast<detail::SharedCounter*>(memory_) + 2 * rank;
    }
    [[nodiscard]] std::byte* slot(int rank, std::uint32_t turn) const noexcept {
        const std::size_t index = static_cast<std::size_t>(2 * rank) + turn % 2;
        return memory_ + static_cast<std::size_t>(world_) * 2 * sizeof(detail::SharedCounter) +
               index * (header_bytes + window_bytes_);
    }
    void wait_for_room(const CollectiveRecord& what);  // until everybody has read the window that is filled next
    void wait_for_all(const CollectiveRecord& what);   // until everybody has filled the window that is read next
    void wait_until(detail::SharedCounter& counter, std::uint32_t value, const CollectiveRecord& what);

    std::byte* memory_;
    int rank_;
    int world_;
    std::size_t window_bytes_;
    const std::atomic<bool>& interrupted_;
    std::uint32_t filled_ = 0;
    std::uint32_t taken_ = 0;
};

}  // namespace strata::comm

#ifndef STRATA_COMPILED
#include <strata/comm/impl/shared_windows.ipp>
#endif
