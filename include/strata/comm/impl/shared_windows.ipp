#pragma once
// strata/comm/impl/shared_windows.ipp - memory without a name, and sleeping on a counter in it.

#include <cerrno>
#include <climits>
#include <ctime>
#include <string>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <strata/comm/shared_windows.hpp>
#include <strata/core/error.hpp>

namespace strata::comm {

namespace detail {

[[noreturn]] STRATA_INLINE void throw_no_shared_memory(const std::string& what, int error) {
    throw Error{Errc::io_failed, what + ": " + std::string{std::strerror(error)},
                "let the ranks use MPI, as MpiComm does by itself"};
}

STRATA_INLINE void raise(SharedCounter& counter) noexcept {
    // Sequentially consistent, like the sleeper's two steps: either the sleeper sees the new value or this sees the
    // sleeper.
    counter.value.fetch_add(1);
    if (counter.sleepers.load() != 0) ::syscall(SYS_futex, &counter.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace detail

STRATA_INLINE SharedMemory::SharedMemory(int file, std::size_t bytes) : bytes_{bytes}, file_{file} {
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        const int error = errno;
        close_file();
        detail::throw_no_shared_memory("shared memory cannot be mapped", error);
    }
    data_ = static_cast<std::byte*>(mapped);
}

STRATA_INLINE SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_{std::exchange(other.data_, nullptr)}, bytes_{other.bytes_}, file_{std::exchange(other.file_, -1)} {}

STRATA_INLINE SharedMemory::~SharedMemory() {
    close_file();
    if (data_ != nullptr) ::munmap(data_, bytes_);
}

STRATA_INLINE void SharedMemory::close_file() noexcept {
    if (file_ >= 0) ::close(std::exchange(file_, -1));
}

STRATA_INLINE SharedMemory SharedMemory::create(std::size_t bytes) {
    // Such memory has no limit of its own: asking for more than there is would end in the kernel's out-of-memory
    // killer.
    const auto quarter =
        static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) / 4 * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (bytes > quarter)
        detail::throw_no_shared_memory(std::to_string(bytes) + " bytes of shared memory are too many for this host",
                                       ENOMEM);
    const int file = ::memfd_create("strata", MFD_CLOEXEC);
    if (file < 0) detail::throw_no_shared_memory("shared memory cannot be made", errno);
    if (const int error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes)); error != 0) {
        ::close(file);
        detail::throw_no_shared_memory(std::to_string(bytes) + " bytes of shared memory cannot be had", error);
    }
    return SharedMemory{file, bytes};
}

STRATA_INLINE SharedMemory SharedMemory::open(std::int64_t process, int file, std::size_t bytes) {
    const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(file);
    const int own = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat found {};
    if (own < 0)
        detail::throw_no_shared_memory("the shared memory of another rank, " + path + ", cannot be opened", errno);
    if (::fstat(own, &found) != 0 || !S_ISREG(found.st_mode) || static_cast<std::size_t>(found.st_size) != bytes) {
        ::close(own);
        detail::throw_no_shared_memory(path + " is not the shared memory of another rank", EINVAL);
    }
    return SharedMemory{own, bytes};
}

STRATA_INLINE std::size_t SharedWindows::bytes_for(int world, std::size_t window_bytes) noexcept {
    return static_cast<std::size_t>(world) * 2 * (sizeof(detail::SharedCounter) + header_bytes + window_bytes);
}

STRATA_INLINE SharedWindows::SharedWindows(std::byte* memory, int rank, int world, std::size_t window_bytes,
                                           const std::atomic<bool>& interrupted)
    : memory_{memory}, rank_{rank}, world_{world}, window_bytes_{window_bytes}, interrupted_{interrupted} {}

STRATA_INLINE void SharedWindows::wait_until(detail::SharedCounter& counter, std::uint32_t value,
                                             const CollectiveRecord& what) {
    while (true) {
        const std::uint32_t seen = counter.value.load();
        if (static_cast<std::int32_t>(seen - value) >= 0) return;  // counters wrap around
        if (interrupted_.load(std::memory_order_relaxed)) throw_interrupted(what);
        // Asleep at once: a sleeper is woken in front of the computation beside it, one that yields comes behind it,
        // and took six times as long for the same collective.
        const timespec tenth_of_a_second{0, 100'000'000};
        counter.sleepers.fetch_add(1);
        if (counter.value.load() == seen)
            ::syscall(SYS_futex, &counter.value, FUTEX_WAIT, seen, &tenth_of_a_second, nullptr, 0);
        counter.sleepers.fetch_sub(1);
    }
}

STRATA_INLINE void SharedWindows::wait_for_room(const CollectiveRecord& what) {
    for (int rank = 0; rank < world_; ++rank) {
        if (rank != rank_) wait_until(control(rank)[1], filled_ - 1, what);
    }
}

STRATA_INLINE void SharedWindows::wait_for_all(const CollectiveRecord& what) {
    for (int rank = 0; rank < world_; ++rank) {
        if (rank != rank_) wait_until(control(rank)[0], taken_ + 1, what);
    }
    for (int rank = 0; rank < world_; ++rank) {
        if (rank == rank_) continue;
        CollectiveRecord theirs;
        std::memcpy(&theirs, slot(rank, taken_), sizeof theirs);
        if (!same_operation(what, theirs)) throw_mismatch(rank_, what, rank, theirs);
    }
}

}  // namespace strata::comm
