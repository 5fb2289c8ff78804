#include "limits.hpp"

#include <cerrno>
#include <cstring>
#include <limits>
#include <sstream>
#include <string_view>
#include <system_error>

#include <liburing.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <strata/core/amounts.hpp>
#include <strata/health/host_reading.hpp>

#include "small_file.hpp"

namespace strata::tools::doctor {

namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

std::uint64_t limit_of(::rlim_t limit) { return limit == RLIM_INFINITY ? no_limit : static_cast<std::uint64_t>(limit); }

/// The number behind "NAME:" of a file such as /proc/meminfo.
std::optional<std::uint64_t> number_of(const std::filesystem::path& file, std::string_view name) {
    std::istringstream in{small_file(file).value_or("")};
    for (std::string word; in >> word;)
        if (std::uint64_t number = 0; word.size() == name.size() + 1 && word.starts_with(name) && word.back() == ':')
            return in >> number ? std::optional{number} : std::nullopt;
    return std::nullopt;
}

}  // namespace

LimitFacts look_at_limits() {
    LimitFacts facts;
    const health::HostReading host = health::read_host({});
    facts.memory_total = host.memory_total;
    facts.memory_available = host.memory_available;
    if (const auto kib = number_of("/proc/meminfo", "MemTotal")) facts.memory_of_host = *kib * 1024;
    struct statvfs shm {};
    if (::statvfs("/dev/shm", &shm) == 0) {
        facts.shm_total = static_cast<std::uint64_t>(shm.f_blocks) * shm.f_frsize;
        facts.shm_available = static_cast<std::uint64_t>(shm.f_bavail) * shm.f_frsize;
        facts.shm_writable = ::access("/dev/shm", W_OK | X_OK) == 0;
    }
    ::rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    facts.files = limit_of(limit.rlim_cur);
    facts.files_at_most = limit_of(limit.rlim_max);
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    facts.locked = limit_of(limit.rlim_cur);
    std::error_code none;
    facts.has_infiniband = std::filesystem::exists("/dev/infiniband", none);
    return facts;
}

Line judge_memory(const LimitFacts& facts) {
    if (!facts.memory_total || !facts.memory_available)
        return warning("memory", "/proc/meminfo does not say how much there is", "mount /proc");
    const std::uint64_t total = *facts.memory_total;
    const std::uint64_t available = *facts.memory_available;
    std::string found = core::in_megabytes(total) + ", of which " + core::in_megabytes(available) + " are free";
    if (facts.memory_of_host && total < *facts.memory_of_host)
        found += "; the cgroup allows no more of the host's " + core::in_megabytes(*facts.memory_of_host);
    Line line = ok("memory", found);
    if (available < 1024 * mib || available < total / 10)
        line = warning("memory", found, "end what uses it (ps --sort=-rss), or give the container more (--memory)");
    line.values = {{"total", total}, {"available", available}};
    return line;
}

Line judge_shared_memory(const LimitFacts& facts) {
    if (!facts.shm_total)
        return problem("shared memory", "there is no /dev/shm, through which ranks of a host exchange",
                       "mount it: mount -t tmpfs tmpfs /dev/shm");
    const std::string found = "/dev/shm has " + core::in_megabytes(*facts.shm_total) + ", of which " +
                              core::in_megabytes(facts.shm_available.value_or(0)) + " are free";
    Line line = ok("shared memory", found);
    const std::string larger = "docker run --shm-size=8g; Kubernetes: an emptyDir with medium Memory at /dev/shm";
    if (!facts.shm_writable)
        line = problem("shared memory", found + ", and this user may not write there", "chmod 1777 /dev/shm");
    else if (facts.shm_available.value_or(0) < 16 * mib)
        line = problem("shared memory", found + ": ranks that fill it are ended by SIGBUS",
                       "remove what dead programs left there, or make it larger: " + larger);
    else if (*facts.shm_total < 1024 * mib)
        line = warning("shared memory", found + ": too little for many ranks, which then are ended by SIGBUS", larger);
    line.values = {{"total", *facts.shm_total}, {"available", facts.shm_available.value_or(0)}};
    return line;
}

Line judge_open_files(const LimitFacts& facts) {
    const auto text = [](std::uint64_t number) { return number == no_limit ? "no limit" : core::with_commas(number); };
    const std::string found = text(facts.files) + " a process (ulimit -n)";
    const std::string raise =
        facts.files_at_most >= 65536
            ? std::string{"type ulimit -n 65536 before the start, or put LimitNOFILE=65536 into the unit"}
            : "raise the hard limit of " + text(facts.files_at_most) +
                  ": `* - nofile 65536` in /etc/security/limits.conf, docker run --ulimit nofile=65536";
    Line line = ok("open files", found);
    if (facts.files < 256)
        line = problem("open files", found + ": fewer than connections to a bucket and shards of a model take", raise);
    else if (facts.files < 1024)
        line = warning("open files", found + ": few for connections to a bucket and shards of a model", raise);
    line.values = {{"limit", facts.files == no_limit ? nlohmann::json{} : nlohmann::json(facts.files)}};
    return line;
}

Line judge_locked_memory(const LimitFacts& facts) {
    const std::string found =
        (facts.locked == no_limit ? "no limit" : core::in_megabytes(facts.locked)) + std::string{" (ulimit -l)"};
    const std::string raise =
        "`* - memlock unlimited` in /etc/security/limits.conf, LimitMEMLOCK=infinity in the unit, docker run --ulimit "
        "memlock=-1";
    Line line = ok("locked memory", found);
    if (facts.has_infiniband && facts.locked != no_limit)
        line = warning("locked memory", found + ", and this host's InfiniBand locks what it sends", raise);
    else if (facts.locked < mib)
        line = warning("locked memory", found + ": too little for the rings of io_uring before Linux 5.12", raise);
    line.values = {{"limit", facts.locked == no_limit ? nlohmann::json{} : nlohmann::json(facts.locked)}};
    return line;
}

UringFacts look_at_uring() {
    UringFacts facts;
    ::io_uring ring{};
    const int result = ::io_uring_queue_init(4, &ring, 0);
    if (result == 0)
        ::io_uring_queue_exit(&ring);
    else
        facts.error = -result;
    if (const auto text = small_file("/proc/sys/kernel/io_uring_disabled")) {
        std::istringstream in{*text};
        if (int value = 0; in >> value) facts.disabled = value;
    }
    facts.is_filtered = number_of("/proc/self/status", "Seccomp").value_or(0) == 2;
    ::utsname name{};
    if (::uname(&name) == 0) facts.kernel = name.release;
    return facts;
}

Line judge(const UringFacts& facts) {
    const std::string subject = "io_uring";
    Line line = ok(subject, "there, on Linux " + facts.kernel);
    const std::string without = "; state on a disk then moves by threads, which costs processor time";
    const std::string refused = "refused (" + std::string{std::strerror(facts.error)} + ")";
    if (facts.error != 0) {
        if (facts.disabled == 2)
            line = warning(subject, refused + ", because kernel.io_uring_disabled is 2" + without,
                           "sysctl kernel.io_uring_disabled=0");
        else if (facts.disabled == 1 && facts.error == EPERM)
            line = warning(
                subject,
                refused + ", because kernel.io_uring_disabled is 1: only for root and kernel.io_uring_group" + without,
                "sysctl kernel.io_uring_group=$(id -g), or kernel.io_uring_disabled=0");
        else if (facts.is_filtered && (facts.error == EPERM || facts.error == ENOSYS || facts.error == EACCES))
            line =
                warning(subject, refused + " by a seccomp filter, as Docker and Kubernetes have one" + without,
                        "allow io_uring_setup, io_uring_enter and io_uring_register in it: docker run --security-opt "
                        "seccomp=PROFILE.json");
        else if (facts.error == ENOSYS)
            line =
                warning(subject, "not there: Linux " + facts.kernel + " has none" + without, "use Linux 5.6 or later");
        else if (facts.error == ENOMEM)
            line = warning(subject, refused + ": a ring is counted as locked memory" + without, "ulimit -l unlimited");
        else
            line = warning(subject, refused + without, "look for a rule of SELinux or AppArmor that says so: dmesg");
    }
    line.values = {{"error", facts.error}, {"kernel", facts.kernel}};
    return line;
}

}  // namespace strata::tools::doctor
