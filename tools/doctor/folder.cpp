#include "folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <strata/core/amounts.hpp>
#include <strata/core/mix.hpp>

#include "../launch_wire.hpp"
#include "small_file.hpp"

namespace strata::tools::doctor {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t block = std::size_t{4} << 20U;
constexpr std::uint64_t most = std::uint64_t{128} << 20U;
constexpr std::chrono::seconds long_enough{2};
constexpr std::size_t alignment = 4096;

struct Freed {
    void operator()(std::byte* bytes) const { std::free(bytes); }
};

/// Bytes that no disk makes smaller.
std::unique_ptr<std::byte, Freed> made_block() {
    std::unique_ptr<std::byte, Freed> bytes{static_cast<std::byte*>(std::aligned_alloc(alignment, block))};
    if (bytes == nullptr) throw std::bad_alloc{};
    for (std::size_t at = 0; at < block; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = core::mix(at + 1);
        std::memcpy(bytes.get() + at, &word, sizeof word);
    }
    return bytes;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void measure(FolderFacts& facts) {
    std::string name = (facts.looked_at / ".strata-doctor-XXXXXX").string();
    const File made{::mkostemp(name.data(), O_CLOEXEC)};
    if (!made.is_open()) {
        facts.write_failure = std::strerror(errno);
        return;
    }
    const File direct{::open(name.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT)};
    ::unlink(name.c_str());
    facts.is_direct = direct.is_open();
    const int file = facts.is_direct ? direct.number() : made.number();
    const std::uint64_t size = std::min(most, facts.available / 8) / block * block;
    if (size == 0) return;
    const auto bytes = made_block();
    std::uint64_t done = 0;
    auto begin = Clock::now();
    while (done < size && (done == 0 || Clock::now() - begin < long_enough)) {
        const ssize_t n = ::pwrite(file, bytes.get(), block, static_cast<::off_t>(done));
        if (n != static_cast<ssize_t>(block)) {
            facts.write_failure = n < 0 ? std::strerror(errno) : "less was written than was asked for";
            return;
        }
        done += block;
    }
    if (::fdatasync(file) != 0) {
        facts.write_failure = std::strerror(errno);
        return;
    }
    facts.written = static_cast<double>(done) / std::max(1e-9, seconds_since(begin));
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    std::uint64_t came = 0;
    begin = Clock::now();
    while (came < done && (came == 0 || Clock::now() - begin < long_enough)) {
        if (::pread(file, bytes.get(), block, static_cast<::off_t>(came)) != static_cast<ssize_t>(block)) return;
        came += block;
    }
    facts.read = static_cast<double>(came) / std::max(1e-9, seconds_since(begin));
}

const std::string nfs_advice =
    "on the server /etc/exports: /shared 10.0.0.0/24(rw,sync,no_subtree_check); on the others /etc/fstab: SERVER:/shared /shared nfs "
    "rw,hard,nfsvers=4.2,_netdev 0 0; the same uid and gid on all hosts, port 2049 open, clocks kept by NTP";

struct Found {
    State state = State::ok;
    std::string what;
    std::string fix;
};

/// What is wrong with a file system for a purpose.
Found judge_mount(const Mount& mount, Purpose purpose) {
    const bool is_kept = purpose == Purpose::output || purpose == Purpose::cache;
    if (mount.has("ro") && purpose != Purpose::data)
        return {State::problem, "it is mounted read-only", "mount it with rw; look in dmesg for errors of the disk"};
    if (mount.is_memory() && purpose == Purpose::offload)
        return {State::problem, "it is memory, and no disk: what is moved there is not out of memory",
                "name a folder on an NVMe disk, or offload to host memory and not to a disk"};
    if (mount.is_memory() && is_kept)
        return {State::warning, "it is memory, and empty after a reboot", "name a folder on a disk"};
    if (mount.type == "overlay" && (purpose == Purpose::offload || is_kept))
        return {State::warning,
                purpose == Purpose::offload
                    ? "it is a container's own layer and no disk's folder: slow, and counted against the container"
                    : "it is a container's own layer, and is lost with the container",
                "mount a folder of the host's disk there: docker run -v /mnt/nvme:/mnt/nvme"};
    if (mount.is_nfs()) {
        if (purpose == Purpose::offload)
            return {State::problem, "it is on a file server, and state moves in every step",
                    "name a folder on each host's own NVMe disk"};
        if (mount.has("soft") || mount.has("softerr"))
            return {State::problem,
                    "it is mounted soft: while the server restarts, writes fail and checkpoints with them",
                    "mount it hard; " + nfs_advice};
        if (mount.has("nolock") || mount.option("local_lock") == "all" || mount.option("local_lock") == "flock")
            return {State::problem, "its locks are not seen by other hosts, so that two runs may write to one folder",
                    "mount it without nolock and local_lock; " + nfs_advice};
        const std::string version = mount.option("vers").empty() ? mount.option("nfsvers") : mount.option("vers");
        if (!version.empty() && version.front() < '4')
            return {State::warning, "it is NFS " + version + ", whose locks outlive a host that is lost",
                    "mount it with nfsvers=4.2; " + nfs_advice};
        if (!mount.has("hard"))
            return {State::warning, "it is not said to be mounted hard", "mount it hard; " + nfs_advice};
    }
    if (mount.type.starts_with("fuse") && purpose != Purpose::data)
        return {
            State::warning,
            "it is a file system of a program (" + mount.type + "), whose renames and locks may not be all or nothing",
            purpose == Purpose::output ? "use NFS, or a bucket of type aws for caches"
                                       : "use a disk's folder, or a bucket of type aws"};
    if (mount.type == "lustre" && purpose == Purpose::output && !mount.has("flock"))
        return {State::problem, "it is Lustre without locks that all hosts see", "mount it with -o flock"};
    if (mount.type == "9p" || mount.type == "vboxsf" || mount.type == "cifs" || mount.type == "smb3")
        return {purpose == Purpose::data ? State::ok : State::warning,
                "it is shared by " + mount.type + ", which is slow with many files", "use a disk's folder, or NFS"};
    return {};
}

std::string subject_of(Purpose purpose) { return purpose == Purpose::folder ? "folder" : name_of(purpose) + " folder"; }

nlohmann::json values_of(const FolderFacts& facts) {
    nlohmann::json values{{"folder", facts.place.folder.string()},
                          {"purpose", name_of(facts.place.purpose)},
                          {"total", facts.total},
                          {"available", facts.available},
                          {"direct", facts.is_direct},
                          {"write_bytes_per_second", facts.written},
                          {"read_bytes_per_second", facts.read}};
    if (facts.mount)
        values.update(
            {{"type", facts.mount->type}, {"source", facts.mount->source}, {"options", facts.mount->options}});
    return values;
}

}  // namespace

FolderFacts look_at_folder(const FolderPlace& place) {
    FolderFacts facts;
    facts.place = place;
    std::error_code failed;
    fs::path folder = fs::absolute(place.folder, failed).lexically_normal();
    const fs::file_status status = fs::status(folder, failed);
    facts.exists = fs::exists(status);
    facts.is_folder = fs::is_directory(status);
    if (status.type() == fs::file_type::none || status.type() == fs::file_type::unknown)
        facts.failure = failed.message();
    while (!fs::is_directory(folder, failed) && folder.has_relative_path()) folder = folder.parent_path();
    if (const fs::path real = fs::canonical(folder, failed); !failed) folder = real;
    facts.looked_at = folder;
    if (const auto text = small_file("/proc/self/mountinfo")) facts.mount = mount_of(parse_mounts(*text), folder);
    struct statvfs room {};
    if (::statvfs(folder.c_str(), &room) == 0) {
        facts.total = static_cast<std::uint64_t>(room.f_blocks) * room.f_frsize;
        facts.available = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
        if (room.f_files > 0) facts.free_inodes = room.f_favail;
    }
    const bool may_be_made = place.purpose == Purpose::output || place.purpose == Purpose::cache;
    if (facts.failure.empty() && place.purpose != Purpose::data && (facts.is_folder || (!facts.exists && may_be_made)))
        measure(facts);
    return facts;
}

Line judge(const FolderFacts& facts) {
    const Purpose purpose = facts.place.purpose;
    const std::string subject = subject_of(purpose);
    const std::string name = facts.place.folder.string();
    const bool may_be_made = purpose == Purpose::output || purpose == Purpose::cache;
    const auto judged = [&]() -> Line {
        if (!facts.failure.empty())
            return problem(subject, name + " cannot be looked at: " + facts.failure,
                           "check the permissions of the folders above it, and their file server");
        if (!facts.exists && !may_be_made)
            return problem(subject, "there is no " + name,
                           purpose == Purpose::offload
                               ? "mount the disk, and make the folder: strata makes none, lest it is on another disk"
                               : "correct the path, or mount what it is on");
        if (facts.exists && !facts.is_folder) return problem(subject, name + " is no folder", "correct the path");
        std::string found = name;
        if (!facts.exists) found += ", which will be made";
        if (facts.mount) found += " on " + facts.mount->type;
        if (purpose != Purpose::data) found += ": " + core::in_megabytes(facts.available) + " free";
        if (facts.written > 0)
            found += (facts.is_direct ? ", writes " : ", through the page cache writes ") + speed_text(facts.written) +
                     (facts.read > 0 ? ", reads " + speed_text(facts.read) : "");
        const Found wrong = facts.mount ? judge_mount(*facts.mount, purpose) : Found{};
        if (wrong.state == State::problem) return problem(subject, found + "; " + wrong.what, wrong.fix);
        if (purpose == Purpose::data) return ok(subject, found);
        if (facts.free_inodes == 0)
            return problem(subject, found + "; it has room for no more files (inodes)",
                           "remove files, or make the file system anew with more inodes (mkfs.ext4 -i)");
        if (!facts.write_failure.empty())
            return problem(subject, found + "; nothing can be written there: " + facts.write_failure,
                           facts.mount && facts.mount->is_nfs()
                               ? "the same uid on all hosts (id -u), and rw in the export; " + nfs_advice
                               : "give this user the right to write there, or make room");
        if (facts.available < (std::uint64_t{1} << 30U))
            return problem(subject, found + ": less than a checkpoint", "make room, or name another disk");
        if (wrong.state == State::warning) return warning(subject, found + "; " + wrong.what, wrong.fix);
        if (facts.available < facts.total / 20)
            return warning(subject, found + ", which is less than 5 %", "make room, or name another disk");
        if (purpose == Purpose::offload && facts.written > 0 && facts.written < 5e8)
            return warning(subject,
                           found + "; state moves through it in every step, and NVMe disks write 1 GB/s and more",
                           "name a folder on an NVMe disk");
        return ok(subject, found);
    };
    Line line = judged();
    line.values = values_of(facts);
    return line;
}

Line silent_folder(const FolderPlace& place, std::chrono::seconds waited) {
    return problem(
        subject_of(place.purpose), place.folder.string() + " has not answered within " + core::in_words(waited),
        "look whether its file server runs and port 2049 is open between; umount -f -l frees a mount that is dead");
}

}  // namespace strata::tools::doctor
