#pragma once
// strata/health/impl/host_reading.ipp - /proc/meminfo, cgroups, /sys/block, hwmon and thermal zones.

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include <sys/statvfs.h>

#include <strata/core/inline.hpp>
#include <strata/health/host_reading.hpp>

namespace strata::health {

namespace detail {

STRATA_INLINE std::string text_of(const std::filesystem::path& path) {
    std::ifstream in{path};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// The number that a text begins with, in base 10 or behind 0x; "max" of a cgroup is none.
STRATA_INLINE std::optional<std::uint64_t> number_in(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    int base = 10;
    if (text.starts_with("0x")) {
        base = 16;
        text.remove_prefix(2);
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error != std::errc{} || end == text.data()) return std::nullopt;
    return number;
}

/// What stands behind `key` at the beginning of a line.
STRATA_INLINE std::optional<std::uint64_t> number_behind(const std::string& text, std::string_view key) {
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
        if (at == 0 || text[at - 1] == '\n') return number_in(std::string_view{text}.substr(at + key.size()));
    return std::nullopt;
}

/// The paths in a folder; none where it cannot be read.
STRATA_INLINE std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> entries;
    std::error_code error;
    for (std::filesystem::directory_iterator at{folder, error}, end; !error && at != end; at.increment(error))
        entries.push_back(at->path());
    std::sort(entries.begin(), entries.end());
    return entries;
}

/// Takes the least of what stands and what one cgroup allows.
STRATA_INLINE void allow(HostReading& reading, std::optional<std::uint64_t> limit, std::uint64_t used) {
    if (!limit || (reading.memory_total && *limit >= *reading.memory_total)) return;  // version 1's "no limit" is huge
    const std::uint64_t left = *limit - std::min(used, *limit);
    reading.memory_total = limit;
    reading.memory_available = std::min(left, reading.memory_available.value_or(left));
}

/// From a process's own cgroup up to the one that is mounted.
STRATA_INLINE void allow_cgroups(HostReading& reading, const std::filesystem::path& mounted, std::string_view own,
                                 bool version_2) {
    const std::string_view limit = version_2 ? "memory.max" : "memory.limit_in_bytes";
    const std::string_view usage = version_2 ? "memory.current" : "memory.usage_in_bytes";
    const std::string_view cache = version_2 ? "inactive_file " : "total_inactive_file ";
    for (std::filesystem::path group = std::filesystem::path{own}.lexically_normal();; group = group.parent_path()) {
        const std::filesystem::path folder = mounted / group.relative_path();
        if (const auto used = number_in(text_of(folder / usage))) {
            const std::uint64_t taken_back = number_behind(text_of(folder / "memory.stat"), cache).value_or(0);
            allow(reading, number_in(text_of(folder / limit)), *used - std::min(taken_back, *used));
        }
        if (group.relative_path().empty()) return;
    }
}

STRATA_INLINE void read_memory(HostReading& reading, const std::filesystem::path& root) {
    const std::string memory = text_of(root / "proc/meminfo");
    if (const auto total = number_behind(memory, "MemTotal:")) reading.memory_total = *total * 1024;
    if (const auto left = number_behind(memory, "MemAvailable:")) reading.memory_available = *left * 1024;
    const std::string groups = text_of(root / "proc/self/cgroup");  // lines "0::/path" or "5:cpu,memory:/path"
    for (std::size_t from = 0; from < groups.size();) {
        const std::size_t end = std::min(groups.find('\n', from), groups.size());
        const std::string_view line = std::string_view{groups}.substr(from, end - from);
        from = end + 1;
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
        if (second == std::string_view::npos) continue;
        const std::string controllers = "," + std::string{line.substr(first + 1, second - first - 1)} + ",";
        if (controllers == ",,")
            allow_cgroups(reading, root / "sys/fs/cgroup", line.substr(second + 1), true);
        else if (controllers.find(",memory,") != std::string::npos)
            allow_cgroups(reading, root / "sys/fs/cgroup/memory", line.substr(second + 1), false);
    }
}

STRATA_INLINE void read_sensor(HostReading& reading, const std::filesystem::path& value,
                               const std::filesystem::path& name) {
    const auto thousandths = number_in(text_of(value));  // below 0 is no number here, and no heat
    if (!thousandths || *thousandths > 200'000) return;  // sensors that are not connected show what they like
    const double degrees = static_cast<double>(*thousandths) / 1000.0;
    if (reading.temperature && *reading.temperature >= degrees) return;
    reading.temperature = degrees;
    reading.hottest = text_of(name);
    while (!reading.hottest.empty() && reading.hottest.back() == '\n') reading.hottest.pop_back();
}

/// The kernel's own reckoning: "some avg10=4.56 avg60=..."; none of one without PSI.
STRATA_INLINE std::optional<double> read_disk_wait(const std::filesystem::path& root) {
    const std::string text = text_of(root / "proc/pressure/io");
    constexpr std::string_view key = "some avg10=";
    if (!text.starts_with(key)) return std::nullopt;
    double percent = 0;
    const auto [end, error] = std::from_chars(text.data() + key.size(), text.data() + text.size(), percent);
    return error == std::errc{} && percent >= 0 && percent <= 100 ? std::optional{percent} : std::nullopt;
}

}  // namespace detail

STRATA_INLINE HostReading read_host(const std::vector<std::filesystem::path>& folders,
                                    const std::filesystem::path& root) {
    HostReading reading;
    detail::read_memory(reading, root);
    for (const std::filesystem::path& folder : folders) {
        struct statvfs disk {};
        if (::statvfs(folder.c_str(), &disk) != 0) continue;
        reading.space.push_back(
            {folder, std::uint64_t{disk.f_blocks} * disk.f_frsize, std::uint64_t{disk.f_bavail} * disk.f_frsize});
    }
    for (const auto& disk : detail::entries_of(root / "sys/block")) {
        // An empty drive's answer to "is there a disc?" counts as failed, several times a minute.
        if (detail::number_in(detail::text_of(disk / "removable")).value_or(0) != 0) continue;
        if (const auto failed = detail::number_in(detail::text_of(disk / "device/ioerr_cnt")))
            reading.errors.push_back({disk.filename().string(), *failed});
    }
    reading.disk_wait_percent = detail::read_disk_wait(root);
    for (const auto& chip : detail::entries_of(root / "sys/class/hwmon"))
        for (const auto& file : detail::entries_of(chip)) {
            const std::string name = file.filename().string();
            if (name.starts_with("temp") && name.ends_with("_input")) detail::read_sensor(reading, file, chip / "name");
        }
    for (const auto& zone : detail::entries_of(root / "sys/class/thermal"))
        if (zone.filename().string().starts_with("thermal_zone"))
            detail::read_sensor(reading, zone / "temp", zone / "type");
    return reading;
}

}  // namespace strata::health
