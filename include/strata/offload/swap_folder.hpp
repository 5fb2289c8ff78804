#pragma once
// strata/offload/swap_folder.hpp - the folder of one run's swap files, and the end of those that dead runs left.

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/file_lock.hpp>

namespace strata::offload {

/// A place for one rank's swap files: `<disk>/strata-swap-<run id>/rank_00003.<name>`.
///
/// A run is alive while one of its ranks holds the lock (flock) on its `rank_NNNNN.lock`; the kernel drops it however
/// the process ends. Whoever makes a SwapFolder first removes the folders of runs that nobody holds, of any user's
/// program, and never touches one that somebody holds or that it may not open. A second lock,
/// `<disk>/.strata-swap.lock`, is held for that moment only, so that no folder is seen half made.
///
/// Local; every rank makes its own. The destructor removes this rank's files, and the folder after the last rank.
class SwapFolder {
public:
    /// Throws not_found when there is no folder `disk`: it is not created, because a disk that is not mounted must not
    /// become a folder beside it. Throws swap_in_use when this rank of this run id is alive already, bad_value when
    /// the run id is no file name, swap_lock_timeout when another process keeps `.strata-swap.lock`, io_failed and
    /// no_space.
    ///
    ///   disk          a folder on a local disk; file systems without flock are refused
    ///   run_id        the same on all ranks, and of no other run: letters, digits, '-', '_' and '.'
    ///   lock_timeout  how long `.strata-swap.lock` is waited for; long enough to delete terabytes
    SwapFolder(std::filesystem::path disk, std::string_view run_id, int rank,
               std::chrono::milliseconds lock_timeout = std::chrono::minutes{1});
    SwapFolder(const SwapFolder&) = delete;
    SwapFolder& operator=(const SwapFolder&) = delete;
    ~SwapFolder();

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return folder_; }
    [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }
    [[nodiscard]] int rank() const noexcept { return rank_; }
    /// Where this rank keeps its file of that name.
    [[nodiscard]] std::filesystem::path file(std::string_view name) const;
    /// Folders of dead runs that the constructor removed.
    [[nodiscard]] const std::vector<std::filesystem::path>& removed() const noexcept { return removed_; }

private:
    void remove_leftovers();
    void remove_own_files() noexcept;

    std::filesystem::path disk_;
    std::string run_id_;
    int rank_;
    std::chrono::milliseconds lock_timeout_;
    std::filesystem::path folder_;
    core::FileLock lock_;
    std::vector<std::filesystem::path> removed_;
};

/// 16 random hexadecimal digits. One rank makes it and tells the others.
[[nodiscard]] std::string new_run_id();

namespace detail {
/// The Error of a system call that failed on a swap file or its folder.
[[nodiscard]] Error swap_error(int error_number, const std::string& action, const std::filesystem::path& path);
}  // namespace detail

}  // namespace strata::offload

#ifndef STRATA_COMPILED
#include <strata/offload/impl/swap_folder.ipp>
#endif
