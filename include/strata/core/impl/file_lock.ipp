#pragma once
// strata/core/impl/file_lock.ipp - flock without waiting, again and again.

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/core/file_lock.hpp>
#include <strata/core/lock_holder.hpp>

namespace strata::core {

namespace detail {

/// A descriptor of the lock file, or -1 with errno.
inline int open_lock_file(const std::filesystem::path& file, LockFileOf whose) {
    // O_CREAT second: with it the kernel refuses another user's file in a folder like /tmp (fs.protected_regular).
    int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT) return ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0 && whose == LockFileOf::all_users && (errno == EACCES || errno == EPERM || errno == EROFS))
        descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    return descriptor;
}

/// Whether the name still leads to this open file. Its last holder may have removed it between open and lock.
inline bool is_named(int descriptor, const std::filesystem::path& file) {
    struct ::stat open_file {
    }, named{};
    return ::fstat(descriptor, &open_file) == 0 && ::stat(file.c_str(), &named) == 0 &&
           open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

/// One attempt; 0 or errno.
inline int try_lock(const std::filesystem::path& file, LockFileOf whose, int& held) {
    while (true) {
        const int descriptor = open_lock_file(file, whose);
        if (descriptor < 0) return errno;
        if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
            const int failure = errno;
            ::close(descriptor);
            if (failure == EINTR) continue;
            return failure;
        }
        if (is_named(descriptor, file)) {
            held = descriptor;
            return 0;
        }
        ::close(descriptor);
    }
}

}  // namespace detail

STRATA_INLINE FileLock::FileLock(FileLock&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}

STRATA_INLINE FileLock& FileLock::operator=(FileLock&& other) noexcept {
    if (this != &other) {
        release();
        descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
}

STRATA_INLINE std::error_code FileLock::hold(const std::filesystem::path& file, LockFileOf whose,
                                             std::chrono::milliseconds within) {
    release();
    const auto until = std::chrono::steady_clock::now() + within;
    std::chrono::milliseconds pause{2};
    int failure = 0;
    while ((failure = detail::try_lock(file, whose, descriptor_)) == EWOULDBLOCK) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) break;
        std::this_thread::sleep_for(std::min(pause, left));
        pause = std::min(2 * pause, std::chrono::milliseconds{100});
    }
    if (failure != 0) return {failure, std::generic_category()};
    const std::string note = lock_note();  // for others to read; where it cannot be written the lock holds all the same
    if (::ftruncate(descriptor_, 0) == 0) {
        [[maybe_unused]] const ssize_t written = ::pwrite(descriptor_, note.data(), note.size(), 0);
    }
    return {};
}

STRATA_INLINE void FileLock::release() noexcept {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

STRATA_INLINE bool FileLock::may_be_held(const std::filesystem::path& file) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    const bool is_free = descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
    if (descriptor >= 0) ::close(descriptor);
    return !is_free;
}

STRATA_INLINE std::string FileLock::holder(const std::filesystem::path& file) {
    std::array<char, 512> note{};
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = descriptor < 0 ? 0 : ::pread(descriptor, note.data(), note.size(), 0);
    if (descriptor >= 0) ::close(descriptor);
    return lock_holder(file, {note.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))});
}

}  // namespace strata::core
