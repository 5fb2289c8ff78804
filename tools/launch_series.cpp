#include "launch_series.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string_view>
#include <utility>

#include <poll.h>

#include <strata/comm/launched_rank.hpp>
#include <strata/core/error.hpp>
#include <strata/health/fault.hpp>

#include "exit_status.hpp"
#include "held_signals.hpp"
#include "launch_command.hpp"
#include "launch_shell.hpp"

namespace strata::tools {

namespace {

using Kind = Message::Kind;
constexpr std::string_view accumulation = "--gradient_accumulation_steps";
constexpr int answer_seconds = 20;  // for a host that may be down

/// A stop signal within that time. It stays taken.
bool stop_within(int milliseconds) {
    sigset_t awaited = heeded_stop_signals();
    const timespec time{milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
    return ::sigtimedwait(&awaited, nullptr, &time) > 0;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string list_of(const std::vector<LaunchHost>& hosts) {
    std::string list;
    for (const LaunchHost& host : hosts) list += (list.empty() ? "" : ", ") + host.name;
    return list;
}

}  // namespace

bool keep_batch(std::vector<std::string>& words, int from, int to) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool is_joined = words[i].starts_with(std::string{accumulation} + "=");
        if (!is_joined && (words[i] != accumulation || i + 1 >= words.size())) continue;
        const std::string text = is_joined ? words[i].substr(accumulation.size() + 1) : words[i + 1];
        std::int64_t steps = 0;
        const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), steps);
        if (failed != std::errc{} || end != text.data() + text.size() || steps < 1) break;
        if (steps * from % to != 0) return false;
        const std::string now = std::to_string(steps * from / to);
        (is_joined ? words[i] : words[i + 1]) = is_joined ? std::string{accumulation} + "=" + now : now;
        return true;
    }
    throw Error{Errc::bad_argument,
                "--elastic-batch keep changes " + std::string{accumulation} +
                    ", and the program's words do not have it with a number",
                "type " + std::string{accumulation} + " N behind the program, or --elastic-batch change"};
}

std::vector<LaunchHost> elastic_hosts(const std::vector<LaunchHost>& there, const SeriesPlan& plan) {
    const int all = plan.launch.ranks;
    const auto least = static_cast<std::size_t>(std::max(1, plan.elastic.least));
    std::vector<LaunchHost> hosts = there;
    while (hosts.size() > static_cast<std::size_t>(plan.elastic.most)) hosts.pop_back();
    const bool are_enough = hosts.size() >= least;
    while (hosts.size() >= least) {
        std::vector<std::string> words = plan.launch.program;
        if (!plan.elastic.keeps_batch || keep_batch(words, all, ranks_of(hosts))) return hosts;
        hosts.pop_back();
    }
    if (are_enough)
        throw Error{Errc::not_elastic,
                    "on " + std::to_string(there.size()) + " hosts the effective batch of " + std::to_string(all) +
                        " ranks cannot be kept",
                    "bring hosts back, lower the least of --elastic, choose a " + std::string{accumulation} +
                        " that more numbers divide, or allow another batch with --elastic-batch change"};
    throw Error{Errc::not_elastic,
                std::to_string(there.size()) + (there.size() == 1 ? " host is" : " hosts are") +
                    " left, and --elastic wants " + std::to_string(plan.elastic.least) + " or more",
                "bring hosts back and start again: it goes on from the newest checkpoint"};
}

/// False where a signal asked to stop. Nodes that came are in plan_.launch.nodes.
bool LaunchSeries::await_nodes() {
    using Clock = std::chrono::steady_clock;
    LaunchNodes& nodes = *plan_.launch.nodes;
    LaunchPort& port = *plan_.launch.port;
    const auto until = Clock::now() + std::chrono::seconds{plan_.wait_seconds};
    const auto enough = Clock::now() + std::chrono::seconds{std::min(plan_.wait_seconds, 30)};
    std::vector<Wire> unknown;
    while (!nodes.has_all()) {
        if (plan_.elastic.least > 0 && Clock::now() >= enough &&
            nodes.hosts().size() >= static_cast<std::size_t>(plan_.elastic.least))
            return true;
        if (Clock::now() >= until) {
            std::string list;
            for (const int rank : nodes.missing()) list += (list.empty() ? "" : ", ") + std::to_string(rank);
            throw Error{
                Errc::node_missing,
                "machine_rank " + list + " did not come within " + std::to_string(plan_.wait_seconds) + " s",
                "start the same command on every node, with this secret and this main_process_ip; --wait SECONDS "
                "waits longer"};
        }
        std::vector<pollfd> watched;
        for (const int number : port.numbers()) watched.push_back({number, POLLIN, 0});
        for (const int number : nodes.numbers()) watched.push_back({number, POLLIN, 0});
        for (const Wire& wire : unknown) watched.push_back({wire.socket(), POLLIN, 0});
        ::poll(watched.data(), watched.size(), 50);
        for (Wire& wire : port.accept()) unknown.push_back(std::move(wire));
        for (Wire& wire : unknown) {
            const bool connected = wire.receive();
            const auto message = wire.next();
            if (message && message->kind == Kind::node) {
                nodes.take(std::move(wire), *message);
                wire = Wire{-1};
            } else if (message || !connected) {
                wire = Wire{-1};  // a rank of a start that has failed
            }
        }
        std::erase_if(unknown, [](const Wire& wire) { return wire.socket() < 0; });
        nodes.take_messages();
        for (const std::string& name : nodes.take_lost())
            std::fprintf(stderr, "strata launch: the connection to %s ended before the launch began\n", name.c_str());
        for (int wrong = port.take_wrong(); wrong > 0; --wrong)
            std::fprintf(stderr, "strata launch: somebody who does not know the secret was not let in\n");
        if (nodes.take_wish_to_stop() || stop_within(0)) return false;
    }
    return true;
}

std::vector<LaunchHost> LaunchSeries::hosts_that_are_there(bool is_restart) const {
    const auto is_left = [this](const LaunchHost& host) { return has(left_, host.name); };
    if (plan_.launch.nodes != nullptr) {
        std::vector<LaunchHost> nodes = plan_.launch.nodes->hosts();
        std::erase_if(nodes, is_left);
        return nodes;
    }
    if (plan_.elastic.least == 0 || !is_restart) return plan_.launch.hosts;
    std::vector<std::string> names;
    for (const LaunchHost& host : plan_.launch.hosts)
        if (host.name != plan_.launch.own_host && !is_left(host)) names.push_back(host.name);
    const std::vector<std::string> answered = hosts_that_answer(names, plan_.remote_shell, answer_seconds);
    std::vector<LaunchHost> there;
    for (const LaunchHost& host : plan_.launch.hosts)
        if (!is_left(host) && (host.name == plan_.launch.own_host || has(answered, host.name))) there.push_back(host);
    return there;
}

LaunchPlan LaunchSeries::plan_on(const std::vector<LaunchHost>& hosts, bool is_restart) const {
    LaunchPlan launch = plan_.launch;
    if (!why_.empty())
        launch.environment.insert(launch.environment.end(),
                                  {std::string{comm::restarts_variable} + "=" + std::to_string(restarts_),
                                   std::string{comm::restarted_variable} + "=" + why_});
    // What was begun afresh is gone on with, and not begun afresh again.
    if (is_restart) std::erase(launch.program, "--fresh");
    if (launch.hosts.empty()) return launch;
    launch.hosts = hosts;
    launch.ranks = ranks_of(hosts);
    if (plan_.elastic.keeps_batch && !keep_batch(launch.program, plan_.launch.ranks, launch.ranks)) return plan_.launch;
    launch.grows = plan_.elastic.least > 0 && hosts.size() + left_.size() < plan_.launch.hosts.size();
    launch.remote_shell = plan_.remote_shell;
    if (launch.grows && launch.nodes == nullptr)
        for (const LaunchHost& host : plan_.launch.hosts)
            if (!has(left_, host.name) &&
                std::none_of(hosts.begin(), hosts.end(), [&](const LaunchHost& one) { return one.name == host.name; }))
                launch.absent.push_back(host.name);
    launch.start = start_words(launch.ranks, host_list(hosts));
    return launch;
}

/// False where the launch cannot go on without them.
bool LaunchSeries::leave(const std::vector<std::string>& names) {
    if (plan_.elastic.least == 0 || names.empty()) return false;
    std::string list;
    for (const std::string& name : names) {
        if (!has(left_, name)) left_.push_back(name);
        list += (list.empty() ? "" : ", ") + name;
    }
    std::fprintf(stderr, "strata launch: %s has a fault, and is left for the rest of this launch\n", list.c_str());
    return true;
}

int LaunchSeries::run() {
    bool is_restart = false;
    const auto stopped = [&](int status) {
        if (plan_.launch.nodes != nullptr) plan_.launch.nodes->dismiss(status);
        return status;
    };
    while (true) {
        LaunchOutcome outcome;
        try {
            if (plan_.launch.nodes != nullptr && !await_nodes()) {
                std::fprintf(stderr, "stopped before training began; nothing was started\n");
                return stopped(0);
            }
            std::vector<LaunchHost> hosts = hosts_that_are_there(is_restart);
            if (plan_.elastic.least > 0) hosts = elastic_hosts(hosts, plan_);
            if (is_restart && !hosts.empty())
                std::fprintf(stderr, "strata launch: goes on from the newest checkpoint on %s\n",
                             list_of(hosts).c_str());
            outcome = LaunchJob{plan_on(hosts, is_restart)}.run();
        } catch (const Error& error) {
            // A host that fell while ranks were being started.
            const bool may_go_on =
                error.code() == Errc::host_lost || (is_restart && error.code() == Errc::cannot_launch);
            if (!may_go_on || restarts_ >= plan_.restarts) {
                stopped(status_of(error));
                throw;
            }
            std::fprintf(stderr, "%s\n", error.what());
            outcome = {.status = host_lost_status, .may_restart = true, .why = error.what(), .lost = {}, .drained = {}};
        }
        is_restart = true;
        why_ = outcome.why;
        if (outcome.is_to_grow && outcome.status == 0) continue;
        const bool has_fault = outcome.status == health::status_of_fault || outcome.status == health::status_of_drained;
        // 2: the program did not understand its words, and will not the next time.
        const bool may_restart = outcome.may_restart && outcome.status != 2;
        if (may_restart && restarts_ >= plan_.restarts && plan_.restarts > 0 && !has_fault)
            std::fprintf(stderr, "strata launch: all %d restarts are used up\n", plan_.restarts);
        if (!may_restart || restarts_ >= plan_.restarts || (has_fault && !leave(outcome.drained)))
            return stopped(outcome.status);
        ++restarts_;
        std::fprintf(stderr, "strata launch: status %d; restart %d of %d\n", outcome.status, restarts_, plan_.restarts);
        if (stop_within(1000)) {
            std::fprintf(stderr, "stopped before the restart; the newest checkpoint is what there is\n");
            return stopped(0);
        }
    }
}

}  // namespace strata::tools
