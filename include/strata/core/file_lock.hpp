#pragma once
// strata/core/file_lock.hpp - a lock between processes that is waited for with an end, and whose holder has a name.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include <strata/core/inline.hpp>

namespace strata::core {

/// Whose a lock file is.
enum class LockFileOf : std::uint8_t {
    one_user,   ///< who cannot write it is refused
    all_users,  ///< whoever may read it may lock it
};

/// An exclusive lock of a file (flock), which the kernel takes back however its holder ends.
///
/// The holder writes its name into the file, as far as it may (lock_note()): holder() then tells it to others, on other
/// hosts too. Between threads of a process it is a lock as well: each FileLock is a holder of its own. Local.
class FileLock {
public:
    FileLock() = default;
    FileLock(FileLock&& other) noexcept;
    FileLock& operator=(FileLock&& other) noexcept;
    ~FileLock() { release(); }

    /// Makes the file where there is none and takes its lock. No error: it is held. std::errc::operation_would_block:
    /// somebody else held it until the time was up. Others are the system's: no right to the file, no flock there.
    ///
    ///   within  how long it is tried: at once and then up to every 0.1 s; 0: once
    [[nodiscard]] std::error_code hold(const std::filesystem::path& file, LockFileOf whose = LockFileOf::one_user,
                                       std::chrono::milliseconds within = std::chrono::milliseconds{0});

    void release() noexcept;
    [[nodiscard]] bool is_held() const noexcept { return descriptor_ >= 0; }

    /// True unless it is certain that nobody holds the lock of this file. Where there is none it is not made.
    [[nodiscard]] static bool may_be_held(const std::filesystem::path& file);

    /// Who holds the lock of this file (lock_holder()), its note read.
    [[nodiscard]] static std::string holder(const std::filesystem::path& file);

private:
    int descriptor_ = -1;
};

}  // namespace strata::core

#ifndef STRATA_COMPILED
#include <strata/core/impl/file_lock.ipp>
#endif
