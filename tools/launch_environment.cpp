#include "launch_environment.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include <sched.h>
#include <unistd.h>

namespace strata::tools {

int cores_to_run_on() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

std::optional<double> parse_quota(std::string_view cpu_max) {
    std::istringstream in{std::string{cpu_max}};
    double time = 0;
    double period = 0;
    if (!(in >> time >> period) || time <= 0 || period <= 0) return std::nullopt;
    return time / period;
}

int cores_within(int cores, std::optional<double> quota) {
    return quota && *quota < cores ? std::max(1, static_cast<int>(*quota)) : cores;
}

int usable_cores() {
    std::string cpu_max;
    std::getline(std::ifstream{"/sys/fs/cgroup/cpu.max"}, cpu_max);
    return cores_within(cores_to_run_on(), parse_quota(cpu_max));
}

int visible_gpus(const std::filesystem::path& devices, const char* chosen) {
    constexpr std::string_view name = "nvidia";
    int count = 0;
    std::error_code none;
    // Their numbers need not begin at 0, nor follow each other: a container has those that it was given.
    for (std::filesystem::directory_iterator at{devices, none}, end; !none && at != end; at.increment(none)) {
        const std::string file = at->path().filename().string();
        if (file.size() > name.size() && file.starts_with(name) &&
            file.find_first_not_of("0123456789", name.size()) == std::string::npos)
            ++count;
    }
    if (chosen == nullptr || count == 0) return count;
    int seen = 0;  // CUDA stops at the first that is none
    for (std::string_view rest = chosen; !rest.empty() && rest.front() != '-' && rest.front() != ','; ++seen)
        rest = rest.substr(std::min(rest.find(','), rest.size() - 1) + 1);
    return seen;
}

LaunchEnvironment::LaunchEnvironment(int ranks, bool many_hosts, bool is_piped) {
    const int cores = usable_cores();
    if (const char* const given = std::getenv("OMP_NUM_THREADS"); given != nullptr) threads_ = given;
    if (!many_hosts || !threads_.empty())
        set("OMP_NUM_THREADS", std::to_string(std::max(1, cores / ranks)),
            std::to_string(cores) + " cores for " + std::to_string(ranks) + " ranks");
    else
        said_.emplace_back("OMP_NUM_THREADS is each host's cores over its ranks");
    const bool terminal = !is_piped && ::isatty(STDOUT_FILENO) != 0;
    set("STRATA_PROGRESS", terminal ? "live" : "plain",
        terminal   ? "output is a terminal"
        : is_piped ? "output of ranks is tagged or kept"
                   : "output is no terminal");
    if (!many_hosts && ranks > cores)
        set("OMPI_MCA_mpi_yield_when_idle", "1", "more ranks than cores: who waits lets others work");
    // Open MPI 5 looks for network interfaces all the same, and complains of each rank where there are none.
    if (!many_hosts) set("OMPI_MCA_btl", "^tcp", "all ranks are on this host, which need no network");
    if (::geteuid() == 0)
        for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT",
                                 "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"})
            set(name, "1", "this is root");
}

void LaunchEnvironment::set(const char* name, const std::string& value, const std::string& why) {
    const char* const given = std::getenv(name);
    if (given != nullptr && *given != '\0') {
        said_.push_back(std::string{name} + "=" + given + " (as it was set)");
        return;
    }
    force(name, value, why);
}

void LaunchEnvironment::force(const char* name, const std::string& value, const std::string& why) {
    ::setenv(name, value.c_str(), 1);
    said_.push_back(std::string{name} + "=" + value + " (" + why + ")");
}

std::vector<std::string> LaunchEnvironment::for_all_hosts() {
    constexpr std::array<std::string_view, 12> prefixes{"OMP_",  "OPENBLAS_", "MKL_", "BLIS_",   "GOMP_", "KMP_",
                                                        "NCCL_", "UCX_",      "FI_",  "STRATA_", "HF_",   "TORCH_"};
    constexpr std::array<std::string_view, 2> names{"LD_LIBRARY_PATH=", "LD_PRELOAD="};
    constexpr std::array<std::string_view, 2> not_these{"STRATA_LAUNCH_", "HF_TOKEN"};
    std::vector<std::string> words;
    for (char** one = environ; *one != nullptr; ++one) {
        const std::string_view word = *one;
        const auto begins = [&](std::string_view prefix) { return word.starts_with(prefix); };
        if (std::any_of(not_these.begin(), not_these.end(), begins)) continue;
        if (std::any_of(prefixes.begin(), prefixes.end(), begins) || std::any_of(names.begin(), names.end(), begins))
            words.emplace_back(word);
    }
    std::sort(words.begin(), words.end());
    return words;
}

}  // namespace strata::tools
