#include "out_of_memory.hpp"

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace strata::tools {

namespace {

namespace fs = std::filesystem;

/// The number behind a name, in lines of "name number".
std::optional<std::uint64_t> count_in(const fs::path& file, std::string_view name) {
    std::ifstream in{file};
    std::string word;
    std::uint64_t count = 0;
    while (in >> word >> count)
        if (word == name) return count;
    return std::nullopt;
}

/// Where the control group of this process counts: version 2 in memory.events, version 1 in memory.oom_control. In a
/// container the group's path is often one that exists outside only, and what is mounted is the group itself.
fs::path group_file(const fs::path& root) {
    std::vector<fs::path> candidates;
    std::ifstream in{root / "proc/self/cgroup"};
    for (std::string line; std::getline(in, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const fs::path path = fs::path{line.substr(second + 1)}.relative_path();
        if (controllers == ",,") {
            candidates.push_back(root / "sys/fs/cgroup" / path / "memory.events");
            candidates.push_back(root / "sys/fs/cgroup/memory.events");
        } else if (controllers.find(",memory,") != std::string::npos) {
            candidates.push_back(root / "sys/fs/cgroup/memory" / path / "memory.oom_control");
            candidates.push_back(root / "sys/fs/cgroup/memory/memory.oom_control");
        }
    }
    for (fs::path& file : candidates)
        if (count_in(file, "oom_kill")) return std::move(file);
    return {};
}

}  // namespace

OutOfMemory::OutOfMemory(fs::path root)
    : root_{std::move(root)},
      group_file_{group_file(root_)},
      group_kills_{group_kills()},
      machine_kills_{machine_kills()},
      log_{::open((root_ / "dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)} {
    if (log_.is_open()) ::lseek(log_.number(), 0, SEEK_END);
}

std::optional<std::uint64_t> OutOfMemory::group_kills() const {
    return group_file_.empty() ? std::nullopt : count_in(group_file_, "oom_kill");
}
std::optional<std::uint64_t> OutOfMemory::machine_kills() const { return count_in(root_ / "proc/vmstat", "oom_kill"); }

bool OutOfMemory::log_names(pid_t process) const {
    if (!log_.is_open()) return false;
    const std::string mark = "Killed process " + std::to_string(process) + " ";
    std::string text;
    for (std::array<char, 8192> record{};;) {  // /dev/kmsg gives one record a read
        const ssize_t n = ::read(log_.number(), record.data(), record.size());
        if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: records were overwritten meanwhile
        if (n <= 0) break;
        text.append(record.data(), static_cast<std::size_t>(n));
    }
    return text.find(mark) != std::string::npos;
}

OutOfMemory::Verdict OutOfMemory::verdict(pid_t process) const {
    if (log_names(process)) return Verdict::killed;
    if (const auto now = group_kills(); now && group_kills_)
        return *now > *group_kills_ ? Verdict::killed : Verdict::not_seen;
    if (const auto now = machine_kills(); now && machine_kills_)
        return *now > *machine_kills_ ? Verdict::likely : Verdict::not_seen;
    return Verdict::unknown;
}

}  // namespace strata::tools
