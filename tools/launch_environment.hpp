#pragma once
// tools/launch_environment.hpp - LaunchEnvironment: the variables that matter to ranks, set where a person has not set them.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::tools {

/// Sets what is not set, and remembers it for -v.
class LaunchEnvironment {
public:
    ///   ranks       of all hosts
    ///   many_hosts  ranks are on other hosts too
    ///   is_piped    ranks print by way of the launcher
    LaunchEnvironment(int ranks, bool many_hosts, bool is_piped);

    /// Sets it, whatever it was.
    void force(const char* name, const std::string& value, const std::string& why);
    [[nodiscard]] const std::vector<std::string>& said() const { return said_; }
    /// OMP_NUM_THREADS as a person set it; empty: it was not set.
    [[nodiscard]] const std::string& threads() const { return threads_; }

    /// NAME=VALUE of what ranks on other hosts need to have as here: threads, BLAS, NCCL, UCX, strata's own, where libraries are. Open MPI
    /// sends its own variables itself. No secret is among them.
    [[nodiscard]] static std::vector<std::string> for_all_hosts();

private:
    void set(const char* name, const std::string& value, const std::string& why);
    std::vector<std::string> said_;
    std::string threads_;
};

/// Cores that this process may run on, be it for a part of the time.
[[nodiscard]] int cores_to_run_on();

/// Cores' worth of time that cgroup v2's cpu.max gives, as in "250000 100000"; none for "max".
[[nodiscard]] std::optional<double> parse_quota(std::string_view cpu_max);

/// Of `cores` as many as the quota has time for, and one at least: with more threads than that all stand still until the next period.
[[nodiscard]] int cores_within(int cores, std::optional<double> quota);

/// cores_to_run_on() within this process' quota.
[[nodiscard]] int usable_cores();

/// How many GPUs a program of this host sees, as the kernel's driver shows them, which needs no library.
///
///   devices  /dev
///   chosen   CUDA_VISIBLE_DEVICES; nullptr: not set
[[nodiscard]] int visible_gpus(const std::filesystem::path& devices, const char* chosen);

}  // namespace strata::tools
