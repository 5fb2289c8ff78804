#pragma once
// tools/launch_node.hpp - a host of a launch that its own user or pod started, with machine_rank 1 or more.

#include <string>

namespace strata::tools {

struct NodePlan {
    int machine_rank = 1;
    int machines = 2;
    int slots = 1;            ///< ranks of this host
    std::string first;        ///< "main_process_ip:main_process_port"
    std::string key;          ///< that both have of the secret
    int wait_seconds = 0;     ///< for the first node to be there
    bool comes_back = false;  ///< a lost connection is made again, since the launch restarts
    bool verbose = false;
};

/// Connects to the first node, and runs the line that it sends, until it says that the launch is over.
///
/// Returns the launch's exit status. Throws Errc::node_refused, node_missing, host_lost. The stop signals must be blocked.
int run_node(const NodePlan& plan);

}  // namespace strata::tools
