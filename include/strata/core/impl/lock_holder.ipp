#pragma once
// strata/core/impl/lock_holder.ipp - /proc/locks and the notes of holders.

#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <strata/core/host_name.hpp>
#include <strata/core/lock_holder.hpp>
#include <strata/core/text.hpp>

namespace strata::core {

namespace detail {

struct LockNote {
    long process = 0;  // 0: there is no note
    std::string host, since, program;
};

inline LockNote parsed_note(std::string_view text) {
    std::istringstream words{std::string{first_line(text)}};
    LockNote note;
    std::string since;
    if (!(words >> note.process >> note.host >> since) || note.process <= 0) return {};
    // "2026-11-22T03:53:10Z" as a person writes it
    if (since.size() == 20) note.since = since.substr(0, 10) + " " + since.substr(11, 8) + " UTC";
    std::getline(words >> std::ws, note.program);
    return note;
}

inline std::string host_or_localhost() {
    const std::string name = host_name();
    return name.empty() ? "localhost" : name;
}

/// The file name of a process's program; empty if there is no such process, or none that may be seen.
inline std::string program_of(long process) {
    const std::string folder = "/proc/" + std::to_string(process);
    std::ifstream words{folder + "/cmdline", std::ios::binary};
    std::string first;
    std::getline(words, first, '\0');
    if (first.empty()) std::getline(std::ifstream{folder + "/comm"}, first);
    return std::filesystem::path{first}.filename().string();
}

/// The process that holds a lock of this file, by the kernel's list; 0: none that can be seen.
///
///   1: FLOCK  ADVISORY  WRITE 26136 fe:00:10952886 0 EOF     with "->" behind the number for one that waits
inline long locking_process(const std::filesystem::path& file) {
    struct ::stat status {};
    if (::stat(file.c_str(), &status) != 0) return 0;
    long same_device = 0, any_device = 0;
    std::ifstream locks{"/proc/locks"};
    for (std::string line; std::getline(locks, line);) {
        if (line.find("->") != std::string::npos) continue;
        long process = 0;
        unsigned major = 0, minor = 0;
        unsigned long inode = 0;
        if (std::sscanf(line.c_str(), "%*d: %*s %*s %*s %ld %x:%x:%lu", &process, &major, &minor, &inode) != 4)
            continue;
        if (inode != status.st_ino || process <= 0) continue;
        any_device = process;  // btrfs and overlays show a file under another device than stat() does
        if (major == gnu_dev_major(status.st_dev) && minor == gnu_dev_minor(status.st_dev)) same_device = process;
    }
    return same_device != 0 ? same_device : any_device;
}

}  // namespace detail

STRATA_INLINE std::string lock_note() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 32> since{};
    std::strftime(since.data(), since.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    const long self = ::getpid();
    return std::to_string(self) + " " + detail::host_or_localhost() + " " + since.data() + " " +
           detail::program_of(self) + "\n";
}

STRATA_INLINE std::string lock_holder(const std::filesystem::path& file, std::string_view note_text) {
    const long process = detail::locking_process(file);
    const std::string here = detail::host_or_localhost();
    detail::LockNote note = detail::parsed_note(note_text);
    const auto told = [](const detail::LockNote& holder) {
        std::string more = holder.program.empty() ? "" : "'" + holder.program + "'";
        if (!holder.since.empty()) more += (more.empty() ? "since " : ", since ") + holder.since;
        return "process " + std::to_string(holder.process) + " on host " + holder.host +
               (more.empty() ? "" : " (" + more + ")");
    };
    if (process == 0) {
        const std::string unseen = "a process that cannot be seen from here";
        return note.process == 0 ? unseen : unseen + "; the file names " + told(note);
    }
    // A note of somebody else is an old one: its writer has ended, and the holder may not write to this file.
    if (note.process != process || note.host != here) note = {process, here, "", detail::program_of(process)};
    return told(note) + (process == ::getpid() ? ", which is this one" : "");
}

}  // namespace strata::core
