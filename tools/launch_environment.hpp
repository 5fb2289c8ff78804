#pragma once
// tools/launch_environment.hpp - LaunchEnvironment: the variables that matter to ranks, set where a person has not set them.

#include <string>
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

/// Cores that this process may use.
[[nodiscard]] int usable_cores();

}  // namespace strata::tools
