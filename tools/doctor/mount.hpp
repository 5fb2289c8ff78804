#pragma once
// tools/doctor/mount.hpp - Mount: which file system a path is on, and how it is mounted.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::tools::doctor {

/// A line of /proc/self/mountinfo.
struct Mount {
    std::string point;    ///< "/shared"
    std::string type;     ///< "ext4", "nfs4", "overlay"
    std::string source;   ///< "10.0.0.100:/shared", "/dev/nvme0n1p1"
    std::string options;  ///< of the mount and of the file system: "rw,relatime,hard,..."

    /// "hard", or "vers=4.2" as "vers"; the value of the latter is in option().
    [[nodiscard]] bool has(std::string_view option) const;
    [[nodiscard]] std::string option(std::string_view name) const;
    [[nodiscard]] bool is_nfs() const { return type == "nfs" || type == "nfs4"; }
    [[nodiscard]] bool is_memory() const { return type == "tmpfs" || type == "ramfs"; }
};

[[nodiscard]] std::vector<Mount> parse_mounts(std::string_view mountinfo);
/// The one that a path lies on: of those whose point is a folder above it, the last with the longest.
///
///   path  absolute, without "." and ".."
[[nodiscard]] std::optional<Mount> mount_of(const std::vector<Mount>& mounts, const std::filesystem::path& path);

}  // namespace strata::tools::doctor
