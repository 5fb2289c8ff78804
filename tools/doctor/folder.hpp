#pragma once
// tools/doctor/folder.hpp - a folder: the file system that it is on, its room, its speed, and what it is good for.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "line.hpp"
#include "mount.hpp"
#include "place.hpp"

namespace strata::tools::doctor {

struct FolderFacts {
    FolderPlace place;
    std::filesystem::path looked_at;  ///< the folder, or the nearest above it that is there
    bool exists = false;
    bool is_folder = false;
    std::string failure;  ///< of looking at it; empty: none
    std::optional<Mount> mount{};
    std::uint64_t total = 0;                     ///< bytes
    std::uint64_t available = 0;                 ///< bytes for this user
    std::optional<std::uint64_t> free_inodes{};  ///< empty: the file system has as many as it likes
    std::string write_failure;                   ///< why a file cannot be made, or written; empty: it can
    bool is_direct = false;                      ///< the speeds are O_DIRECT's; else the page cache was part of it
    double written = 0;                          ///< bytes a second; 0: not measured
    double read = 0;
};

/// Writes up to 128 MiB for up to two seconds, reads them again past the page cache, and leaves nothing behind: the file loses its name
/// before the first byte. Folders of pictures are only looked at. May hang where a file server does.
[[nodiscard]] FolderFacts look_at_folder(const FolderPlace& place);

[[nodiscard]] Line judge(const FolderFacts& facts);
/// What a folder is whose file server has not answered within that time.
[[nodiscard]] Line silent_folder(const FolderPlace& place, std::chrono::seconds waited);

}  // namespace strata::tools::doctor
