#pragma once
// tools/launch_company.hpp - Company: which hosts a launch is about, as the words of `strata launch` and their files say it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "launch_hosts.hpp"
#include "launch_series.hpp"

namespace strata::tools {

/// Hosts, and how they are reached.
struct Company {
    std::vector<LaunchHost> hosts;  ///< none: this one alone
    std::string how;                ///< for -v
    std::optional<std::int64_t> ranks;
    // where each host was started by itself
    int machines = 1;
    int machine_rank = 0;
    std::string first;  ///< main_process_ip:main_process_port
    std::uint16_t port = 0;
    std::string gpus;  ///< of this host, for CUDA_VISIBLE_DEVICES; empty: all
};

/// Of --hostfile, --config, --include, --exclude, -n, and Slurm's variables. Throws Errc::bad_argument, cannot_launch, unreadable_config.
[[nodiscard]] Company company_of(const Arguments& arguments);

/// The key that hosts prove to each other which were started by themselves. Throws Errc::bad_argument.
[[nodiscard]] std::string secret_of(const Arguments& arguments);

/// Throws Errc::bad_argument.
[[nodiscard]] Elastic elastic_of(const Arguments& arguments, std::size_t hosts);

/// Of the environment; empty where it is not set.
[[nodiscard]] std::string variable(const char* name);

}  // namespace strata::tools
