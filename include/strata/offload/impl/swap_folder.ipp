#pragma once
// strata/offload/impl/swap_folder.ipp - locks, and the removal of what nobody holds.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
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

/// A descriptor that may hold a lock; closing it gives the lock back.
class HeldFile {
public:
    explicit HeldFile(int descriptor) noexcept : descriptor_{descriptor} {}
    HeldFile(const HeldFile&) = delete;
    HeldFile& operator=(const HeldFile&) = delete;
    ~HeldFile() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    [[nodiscard]] int get() const noexcept { return descriptor_; }
    [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }

private:
    int descriptor_;
};

/// Waits for the lock under which folders come and go. Readable by all: another user's run takes the same one.
inline int hold_door(const std::filesystem::path& disk) {
    const std::filesystem::path path = disk / ".strata-swap.lock";
    int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT) descriptor = ::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0) throw swap_error(errno, "open", path);
    HeldFile file{descriptor};
    while (::flock(file.get(), LOCK_EX) != 0) {
        if (errno != EINTR) throw swap_error(errno, "lock", path);
    }
    return file.release();
}

/// True unless it is certain that no process holds this lock.
inline bool somebody_holds(const std::filesystem::path& lock) {
    const HeldFile file{::open(lock.c_str(), O_RDONLY | O_CLOEXEC)};
    return file.get() < 0 || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;
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

STRATA_INLINE SwapFolder::SwapFolder(std::filesystem::path disk, std::string_view run_id, int rank)
    : disk_{std::move(disk)}, run_id_{run_id}, rank_{rank} {
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

    const detail::HeldFile door{detail::hold_door(disk_)};
    remove_leftovers();
    if (::mkdir(folder_.c_str(), 0755) != 0 && errno != EEXIST) throw detail::swap_error(errno, "create", folder_);
    const std::filesystem::path lock = file("lock");
    detail::HeldFile held{::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
    if (held.get() < 0) throw detail::swap_error(errno, "create", lock);
    if (::flock(held.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) throw detail::swap_error(errno, "lock", lock);
        throw Error{Errc::swap_in_use,
                    "rank " + std::to_string(rank) + " of a living run with the id " + run_id_ +
                        " keeps its state in " + folder_.string(),
                    "wait for that run to end, or give every run an id of its own"};
    }
    for (const auto& old : detail::files_of(folder_, detail::rank_prefix(rank_))) {  // of a dead rank with this id
        if (old != lock) ::unlink(old.c_str());
    }
    lock_ = held.release();
}

STRATA_INLINE SwapFolder::~SwapFolder() {
    try {
        const detail::HeldFile door{detail::hold_door(disk_)};
        remove_own_files();
        ::close(lock_);
        ::rmdir(folder_.c_str());      // fails, as it should, while other ranks are there
    } catch (const std::exception&) {  // the disk is gone; there is nothing left to remove
        ::close(lock_);
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
            return file.extension() == ".lock" && detail::somebody_holds(file);
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
