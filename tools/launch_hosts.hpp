#pragma once
// tools/launch_hosts.hpp - the hosts of a launch: from a hostfile, from Slurm, or one for each machine of an Accelerate YAML.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/hostfile.hpp>

namespace strata::tools {

/// A host and the slots of it that take a rank each.
struct LaunchHost {
    std::string name;
    std::vector<std::int64_t> slots;
    bool is_filtered = false;  ///< --include or --exclude left some out: the others become CUDA_VISIBLE_DEVICES
};

[[nodiscard]] int ranks_of(const std::vector<LaunchHost>& hosts);

/// Throws as config::load_hostfile() and filter_hosts().
[[nodiscard]] std::vector<LaunchHost> hosts_of_file(const std::string& file, std::string_view include,
                                                    std::string_view exclude);

/// Slurm's "n[01-03,7],gpu5" as names. Throws Errc::cannot_launch for what is no such list.
[[nodiscard]] std::vector<std::string> names_of_nodelist(std::string_view list);

/// Of SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE ("8(x3),4"). Throws Errc::cannot_launch.
[[nodiscard]] std::vector<LaunchHost> hosts_of_slurm(std::string_view nodelist, std::string_view tasks_per_node);

/// Leaves `ranks` slots: the first ones. Throws Errc::bad_argument where there are fewer.
[[nodiscard]] std::vector<LaunchHost> first_slots(std::vector<LaunchHost> hosts, int ranks);

/// What a person should know where hosts have different numbers of slots; else empty.
[[nodiscard]] std::string warning_of_uneven(const std::vector<LaunchHost>& hosts);

/// What a person should know where a host has other numbers of ranks and of GPUs; else empty. Slurm's default of one task a node leaves all
/// but one of its GPUs idle.
[[nodiscard]] std::string warning_of_gpus(const std::string& host, int ranks, int gpus);

/// "worker-0:8,worker-1:8", for mpirun --host.
[[nodiscard]] std::string host_list(const std::vector<LaunchHost>& hosts);

}  // namespace strata::tools
