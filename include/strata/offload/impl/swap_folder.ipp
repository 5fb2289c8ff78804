#pragma once
// strata/offload/impl/swap_folder.ipp - locks, and the removal of what nobody holds.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <strata/offload/swap_folder.hpp>

namespace strata::offload {

namespace detail {

inline constexpr std::string_view swap_folder_prefix = "strata-swap-";

STRATA_INLINE Error swap_error(int error_number, const std::string& action, const std::filesystem::path& path) {
    const std::string what =
        "cannot " + action + " " + path.string() + ": " + std::generic_category().message(error_number);
    switch (error_number) {
        case ENOSPC:
        case EDQUOT:
            return Error{Errc::no_space, what, "free space there or choose a larger disk for the offload"};
        case ENOENT:
        case ENOTDIR:
            return Error{Errc::not_found, what, "mount the disk or create the folder; strata does not create it"};
        case EACCES:
        case EPERM:
        case EROFS:
            return Error{Errc::io_failed, what, "give this user the right to it or choose another folder"};
        case EIO:
            return Error{Errc::io_failed, what, "the disk reports a defect: look at dmesg and replace it"};
        default:
            return Error{Errc::io_failed, what, "choose a folder on a healthy local disk"};
    }
}

/// "60 s", "0.25 s"
inline std::string seconds_text(std::chrono::milliseconds time) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g s", static_cast<double>(time.count()) / 1000);
    return text.data();
}

/// The lock under which folders come and go. Readable by all: another user's run takes the same one.
inline std::filesystem::path door_of(const std::filesystem::path& disk) { return disk / ".strata-swap.lock"; }

/// Waits for the door.
inline core::FileLock through_door(const std::filesystem::path& disk, std::chrono::milliseconds timeout) {
    core::FileLock door;
    const std::error_code failed = door.hold(door_of(disk), core::LockFileOf::all_users, timeout);
    if (failed == std::errc::operation_would_block)
        throw Error{Errc::swap_lock_timeout,
                    "the lock " + door_of(disk).string() + " was not free for " + seconds_text(timeout) + ", held by " +
                        core::FileLock::holder(door_of(disk)),
                    "see what that process does and end it if it hangs, for it needs this lock for moments only; or "
                    "choose another folder for the offload"};
    if (failed) throw swap_error(failed.value(), "lock", door_of(disk));
    return door;
}

inline std::string rank_prefix(int rank) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "rank_%05d.", rank);
    return text.data();
}

/// The files of a folder whose names begin so.
inline std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, std::string_view prefix) {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (std::filesystem::directory_iterator it{folder, error}, end; !error && it != end; it.increment(error)) {
        if (it->path().filename().string().starts_with(prefix)) files.push_back(it->path());
    }
    return files;
}

}  // namespace detail

STRATA_INLINE SwapFolder::SwapFolder(std::filesystem::path disk, std::string_view run_id, int rank,
                                     std::chrono::milliseconds lock_timeout)
    : disk_{std::move(disk)}, run_id_{run_id}, rank_{rank}, lock_timeout_{lock_timeout} {
    const bool is_name =
        !run_id.empty() && run_id.size() <= 100 && std::all_of(run_id.begin(), run_id.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                   c == '.';
        });
    if (!is_name) {
        throw Error{Errc::bad_value, "the run id '" + run_id_ + "' is no file name",
                    "use up to 100 letters, digits, '-', '_' and '.'"};
    }
    folder_ = disk_ / (std::string{detail::swap_folder_prefix} + run_id_);
    if (!std::filesystem::is_directory(disk_)) throw detail::swap_error(ENOENT, "use", disk_);

    const core::FileLock door = detail::through_door(disk_, lock_timeout_);
    remove_leftovers();
    if (::mkdir(folder_.c_str(), 0755) != 0 && errno != EEXIST) throw detail::swap_error(errno, "create", folder_);
    const std::filesystem::path lock = file("lock");
    if (const std::error_code failed = lock_.hold(lock)) {
        if (failed != std::errc::operation_would_block) throw detail::swap_error(failed.value(), "lock", lock);
        throw Error{Errc::swap_in_use,
                    "rank " + std::to_string(rank) + " of a living run with the id " + run_id_ +
                        " keeps its state in " + folder_.string() + ": " + core::FileLock::holder(lock),
                    "wait for that run to end, or give every run an id of its own"};
    }
    for (const auto& old : detail::files_of(folder_, detail::rank_prefix(rank_))) {  // of a dead rank with this id
        if (old != lock) ::unlink(old.c_str());
    }
}

STRATA_INLINE SwapFolder::~SwapFolder() {
    try {
        const core::FileLock door = detail::through_door(disk_, lock_timeout_);
        remove_own_files();
        lock_.release();
        ::rmdir(folder_.c_str());  // fails, as it should, while other ranks are there
    } catch (const std::exception&) {
        // The disk is gone, or the door stays shut. Files of one's own may go all the same; the empty folder may not,
        // because another rank may be about to make its lock there. The next run on this disk removes it.
        remove_own_files();
    }
}

STRATA_INLINE std::filesystem::path SwapFolder::file(std::string_view name) const {
    return folder_ / (detail::rank_prefix(rank_) + std::string{name});
}

STRATA_INLINE void SwapFolder::remove_leftovers() {
    for (const auto& folder : detail::files_of(disk_, detail::swap_folder_prefix)) {
        std::error_code error;
        if (!std::filesystem::is_directory(std::filesystem::symlink_status(folder, error))) continue;
        const auto files = detail::files_of(folder, "rank_");
        const bool alive = std::any_of(files.begin(), files.end(), [](const std::filesystem::path& file) {
            return file.extension() == ".lock" && core::FileLock::may_be_held(file);
        });
        if (alive) continue;
        for (const auto& file : files) ::unlink(file.c_str());
        if (::rmdir(folder.c_str()) == 0) removed_.push_back(folder);  // not with something strange inside
    }
}

STRATA_INLINE void SwapFolder::remove_own_files() noexcept {
    for (const auto& own : detail::files_of(folder_, detail::rank_prefix(rank_))) ::unlink(own.c_str());
}

STRATA_INLINE std::string new_run_id() {
    std::random_device random;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%08x%08x", random(), random());
    return text.data();
}

}  // namespace strata::offload
