#pragma once
// tools/launch_nodes.hpp - LaunchNodes: the hosts that their own user or pod started, as the first of them sees them.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch_hosts.hpp"
#include "launch_port.hpp"
#include "launch_socket.hpp"
#include "launch_wire.hpp"

namespace strata::tools {

/// Where `strata launch-shell` finds the launcher: mpirun starts it in place of ssh.
inline constexpr const char* shell_socket_variable = "STRATA_LAUNCH_SHELL";

/// Nodes 1 to machines - 1 of a launch. Each has proved that it knows the secret when it comes here, and then waits for the line
/// that mpirun wants to have run on it. They stay for the whole launch, restarts included.
class LaunchNodes {
public:
    ///   slots  ranks of each node
    LaunchNodes(int machines, int slots);

    /// "node-2", as mpirun knows it.
    [[nodiscard]] static std::string name_of(int machine_rank) { return "node-" + std::to_string(machine_rank); }

    [[nodiscard]] std::vector<int> numbers() const;
    /// Who says that it is a node. Refused, in one sentence on both sides, where it cannot be one.
    void take(Wire wire, const Message& message);
    /// What nodes and shells say. Never waits.
    void take_messages();

    [[nodiscard]] bool has_all() const;
    /// Nodes that are not there.
    [[nodiscard]] std::vector<int> missing() const;
    /// This host, and the nodes that are there.
    [[nodiscard]] std::vector<LaunchHost> hosts() const;
    /// Nodes whose connection has ended since the last call.
    [[nodiscard]] std::vector<std::string> take_lost() { return std::exchange(lost_, {}); }
    /// A node was asked to stop.
    [[nodiscard]] bool take_wish_to_stop() { return std::exchange(stop_, false); }
    [[nodiscard]] const std::string& shell_socket() const { return shells_at_.path(); }
    /// Told to all nodes, which end with it.
    void dismiss(int status);

private:
    struct Node {
        Wire wire;
        int rank = 0;
        std::string host;
    };
    /// A `strata launch-shell` of mpirun, and the node that runs its line.
    struct Shell {
        Wire wire;
        int node = -1;  // until it has said it
        bool is_over = false;
    };
    Node* node_of(int rank);
    void take(Node& node, const Message& message);
    void take(Shell& shell, const Message& message);

    int machines_;
    int slots_;
    LaunchSocket shells_at_;
    std::vector<Node> nodes_;
    std::vector<Shell> shells_;
    std::vector<std::string> lost_;
    bool stop_ = false;
};

}  // namespace strata::tools
