#include "launch_nodes.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <strata/core/printable.hpp>

namespace strata::tools {

namespace {
using Kind = Message::Kind;
}  // namespace

LaunchNodes::LaunchNodes(int machines, int slots) : machines_{machines}, slots_{slots} {}

std::vector<int> LaunchNodes::numbers() const {
    std::vector<int> numbers{shells_at_.number()};
    for (const Node& node : nodes_) numbers.push_back(node.wire.socket());
    for (const Shell& shell : shells_)
        if (!shell.is_over) numbers.push_back(shell.wire.socket());
    return numbers;
}

LaunchNodes::Node* LaunchNodes::node_of(int rank) {
    const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.rank == rank; });
    return found == nodes_.end() ? nullptr : &*found;
}

void LaunchNodes::take(Wire wire, const Message& message) {
    if (message.words.size() != 4) return;
    const int rank = std::atoi(message.words[0].c_str());
    const int slots = std::atoi(message.words[1].c_str());
    const std::string host = core::printable(message.words[2]);
    const int machines = std::atoi(message.words[3].c_str());
    const auto refuse = [&](const std::string& what, const std::string& fix) {
        wire.send({Kind::refused, {what, fix}});
        std::fprintf(stderr, "strata launch: host %s was not let in: %s\n", host.c_str(), what.c_str());
    };
    if (machines != machines_)
        return refuse("its num_machines is " + std::to_string(machines) + ", and that of the first node is " +
                          std::to_string(machines_),
                      "give all nodes the same Accelerate YAML, but for machine_rank");
    if (rank < 1 || rank >= machines_)
        return refuse("its machine_rank is " + std::to_string(rank) + ", of " + std::to_string(machines_) + " machines",
                      "count machine_rank from 0 on; 0 is the node at main_process_ip");
    if (slots != slots_)
        return refuse("it has " + std::to_string(slots) + " ranks, and the first node has " + std::to_string(slots_),
                      "give all nodes the same num_processes and num_machines");
    if (const Node* const other = node_of(rank))
        return refuse("machine_rank " + std::to_string(rank) + " is already that of host " + other->host,
                      "give each node a machine_rank of its own");
    nodes_.push_back({std::move(wire), rank, host});
}

void LaunchNodes::take_messages() {
    while (auto wire = shells_at_.accept()) shells_.push_back({std::move(*wire)});
    for (Shell& shell : shells_) {
        if (shell.is_over) continue;
        const bool connected = shell.wire.receive();
        while (const auto message = shell.wire.next()) take(shell, *message);
        if (connected) continue;
        shell.is_over = true;  // mpirun has ended it: what it stood for goes too
        if (Node* const node = node_of(shell.node)) node->wire.send({Kind::end, {}});
    }
    std::erase_if(shells_, [](const Shell& shell) { return shell.is_over; });
    for (std::size_t i = 0; i < nodes_.size();) {
        Node& node = nodes_[i];
        const bool connected = node.wire.receive();
        while (const auto message = node.wire.next()) take(node, *message);
        if (connected && node.wire.failure() == 0) {
            ++i;
            continue;
        }
        lost_.push_back(name_of(node.rank));
        for (Shell& shell : shells_)
            if (shell.node == node.rank) {
                shell.wire.send({Kind::done, {std::to_string(255 << 8), ""}});
                shell.is_over = true;
            }
        nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    std::erase_if(shells_, [](const Shell& shell) { return shell.is_over; });
}

void LaunchNodes::take(Node& node, const Message& message) {
    if (message.kind == Kind::stop) stop_ = true;
    if (message.kind != Kind::done) return;
    for (Shell& shell : shells_) {
        if (shell.node != node.rank || shell.is_over) continue;
        shell.wire.send(message);
        shell.is_over = true;
        break;
    }
}

void LaunchNodes::take(Shell& shell, const Message& message) {
    if (message.kind != Kind::line || message.words.size() != 2) return;
    Node* node = nullptr;
    for (Node& one : nodes_)
        if (name_of(one.rank) == message.words[0]) node = &one;
    if (node == nullptr) {
        shell.wire.send(
            {Kind::done, {std::to_string(255 << 8), "no node of the name " + message.words[0] + " is there\n"}});
        shell.is_over = true;
        return;
    }
    shell.node = node->rank;
    node->wire.send({Kind::line, {message.words[0], message.words[1]}});
}

std::vector<int> LaunchNodes::missing() const {
    std::vector<int> ranks;
    for (int rank = 1; rank < machines_; ++rank)
        if (std::none_of(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.rank == rank; }))
            ranks.push_back(rank);
    return ranks;
}

bool LaunchNodes::has_all() const { return missing().empty(); }

std::vector<LaunchHost> LaunchNodes::hosts() const {
    std::vector<std::int64_t> slots(static_cast<std::size_t>(slots_));
    std::iota(slots.begin(), slots.end(), std::int64_t{0});
    std::vector<LaunchHost> hosts{{"localhost", slots}};
    for (int rank = 1; rank < machines_; ++rank)
        if (std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.rank == rank; }))
            hosts.push_back({name_of(rank), slots});
    return hosts;
}

void LaunchNodes::dismiss(int status) {
    for (Node& node : nodes_) node.wire.send({Kind::leave, {std::to_string(status)}});
}

}  // namespace strata::tools
