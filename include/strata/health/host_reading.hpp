#pragma once
// strata/health/host_reading.hpp - HostReading: memory, disks and temperature of the host, as the kernel shows them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>

namespace strata::health {

/// The disk that a watched folder is on.
struct DiskSpace {
    std::filesystem::path folder;
    std::uint64_t total = 0;      ///< bytes
    std::uint64_t available = 0;  ///< bytes that this user may still write
};

/// Failed requests of one block device since it was found: of a program that asks for SMART values some are refused on a healthy disk, too.
struct DiskErrors {
    std::string device;  ///< "sda"
    std::uint64_t failed = 0;
};

/// Empty is what the kernel does not show.
struct HostReading {
    std::optional<std::uint64_t> memory_total;      ///< bytes; of the host, or less where a cgroup allows less
    std::optional<std::uint64_t> memory_available;  ///< bytes until somebody is killed; page cache counts as available
    std::vector<DiskSpace> space;                   ///< of the folders whose disk can be asked
    std::vector<DiskErrors> errors;                 ///< of fixed disks that count: NVMe drives and virtual ones do not
    std::optional<double> disk_wait_percent;  ///< of the last 10 seconds, in which a task of the host waited for a disk
    std::optional<double> temperature;        ///< degrees Celsius, of the hottest sensor
    std::string hottest;                      ///< its name: "coretemp", "x86_pkg_temp"
};

/// Looks once: some tens of small files of /proc and /sys, well below a millisecond. Throws nothing that is not std::bad_alloc.
///
///   folders  whose disks matter: output, caches, swap
///   root     where proc/ and sys/ lie: "/", or a folder of a test
/// Memory is the least that the host and every cgroup from this process's own up to the root still allow, of version 2 and 1; what a
/// cgroup uses is counted without its inactive page cache, which the kernel takes back first.
[[nodiscard]] HostReading read_host(const std::vector<std::filesystem::path>& folders,
                                    const std::filesystem::path& root = "/");

}  // namespace strata::health

#ifndef STRATA_COMPILED
#include <strata/health/impl/host_reading.ipp>
#endif
