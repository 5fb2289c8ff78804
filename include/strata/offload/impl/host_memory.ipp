#pragma once
// strata/offload/impl/host_memory.ipp - /proc/meminfo, control groups and statvfs.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include <sys/statvfs.h>

#include <strata/offload/host_memory.hpp>

namespace strata::offload {

namespace detail {

/// The number in a file of one number; nothing for "max" and for files that are not there.
inline std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
    std::ifstream in{file};
    std::uint64_t value = 0;
    if (in >> value) return value;
    return std::nullopt;
}

/// The number behind a word in a file of "word number" lines.
inline std::optional<std::uint64_t> number_behind(const std::filesystem::path& file, std::string_view word) {
    std::ifstream in{file};
    for (std::string line; std::getline(in, line);) {
        std::istringstream words{line};
        std::string first;
        std::uint64_t value = 0;
        if (words >> first >> value && first == word) return value;
    }
    return std::nullopt;
}

/// What one version of control groups calls its files.
struct CgroupNames {
    const char* limit;
    const char* usage;
    const char* droppable;  // in memory.stat; of the whole subtree
};
inline constexpr CgroupNames cgroup2{"memory.max", "memory.current", "inactive_file"};
inline constexpr CgroupNames cgroup1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

/// What is left in a group and in every group above it, up to `top`.
inline std::uint64_t left_in_groups(const std::filesystem::path& top, const std::filesystem::path& group,
                                    const CgroupNames& names) {
    std::uint64_t left = std::numeric_limits<std::uint64_t>::max();
    // In a container the path in /proc/self/cgroup may be the host's: what is not there is skipped.
    for (std::filesystem::path at = group.relative_path();; at = at.parent_path()) {
        const std::filesystem::path folder = top / at;
        const auto limit = number_in(folder / names.limit);
        const auto usage = number_in(folder / names.usage);
        if (limit && usage) {
            const std::uint64_t dropped = number_behind(folder / "memory.stat", names.droppable).value_or(0);
            const std::uint64_t used = *usage - std::min(*usage, dropped);
            left = std::min(left, *limit - std::min(*limit, used));
        }
        if (at.empty()) return left;
    }
}

}  // namespace detail

STRATA_INLINE std::uint64_t free_host_memory(const std::filesystem::path& root) {
    const auto available = detail::number_behind(root / "proc/meminfo", "MemAvailable:");
    if (!available) {
        throw Error{Errc::io_failed, "cannot read MemAvailable from " + (root / "proc/meminfo").string(),
                    "mount /proc, which tells how much memory is free"};
    }
    std::uint64_t free = *available * 1024;
    std::ifstream groups{root / "proc/self/cgroup"};
    for (std::string line; std::getline(groups, line);) {  // "0::/path" or "4:memory:/path"
        const auto first = line.find(':');
        const auto second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string controllers{','};
        controllers.append(line, first + 1, second - first - 1).append(",");
        const std::string group = line.substr(second + 1);
        if (controllers == ",,") {
            free = std::min(free, detail::left_in_groups(root / "sys/fs/cgroup", group, detail::cgroup2));
        } else if (controllers.find(",memory,") != std::string::npos) {
            free = std::min(free, detail::left_in_groups(root / "sys/fs/cgroup/memory", group, detail::cgroup1));
        }
    }
    return free;
}

STRATA_INLINE std::uint64_t free_disk_space(const std::filesystem::path& path) {
    struct ::statvfs disk {};
    if (::statvfs(path.c_str(), &disk) != 0) {
        throw Error{errno == ENOENT ? Errc::not_found : Errc::io_failed,
                    "cannot inspect the disk of " + path.string() + ": " + std::generic_category().message(errno),
                    "check the path's spelling and that the disk is mounted"};
    }
    return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

STRATA_INLINE void require_host_memory(std::string_view what, std::uint64_t bytes, std::string_view fix,
                                       std::uint64_t free) {
    if (bytes <= free) return;
    throw Error{
        Errc::not_enough_memory,
        std::string{what} + " needs " + in_gib(bytes) + " of host memory on this node, " + in_gib(free) + " are free",
        fix};
}

STRATA_INLINE void require_disk_space(std::string_view what, const std::filesystem::path& path, std::uint64_t bytes) {
    const std::uint64_t free = free_disk_space(path);
    if (bytes <= free) return;
    throw Error{
        Errc::no_space,
        std::string{what} + " needs " + in_gib(bytes) + " on " + path.string() + ", " + in_gib(free) + " are free",
        "free space there, choose a larger disk, or use more ranks, so that each keeps a smaller share"};
}

STRATA_INLINE std::string in_gib(std::uint64_t bytes) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2f GiB", static_cast<double>(bytes) / 1073741824.0);
    return text.data();
}

}  // namespace strata::offload
