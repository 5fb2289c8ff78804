#include "launch_series.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <optional>
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
constexpr int answer_seconds = 20;  // for a host that may be down
constexpr std::chrono::minutes rest{5};

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
    launch.remote_shell = plan_.remote_shell;
    if (plan_.elastic.least > 0) {
        std::vector<LaunchHost> all = plan_.launch.hosts;
        std::erase_if(all, [this](const LaunchHost& host) { return has(left_, host.name); });
        if (launch.nodes == nullptr)
            for (const LaunchHost& host : all)
                if (std::none_of(hosts.begin(), hosts.end(),
                                 [&](const LaunchHost& one) { return one.name == host.name; }))
                    launch.absent.push_back(host.name);
        launch.would_grow =
            [this, used = hosts, all = std::move(all), elastic = plan_.elastic,
             program = ElasticProgram{plan_.launch.program, plan_.launch.ranks}](std::vector<std::string> come) {
                std::erase_if(come, [this](const std::string& name) { return rests(name); });
                return would_grow(used, all, come, elastic, program);
            };
    }
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

bool LaunchSeries::rests(const std::string& name) const {
    const auto found = resting_.find(name);
    return found != resting_.end() && std::chrono::steady_clock::now() < found->second;
}

/// A host that has room for a shell and none for a rank would be chosen at each restart, until all are used up.
void LaunchSeries::let_rest(const std::string& name) {
    if (plan_.elastic.least == 0 || name.empty()) return;
    resting_[name] = std::chrono::steady_clock::now() + rest;
    std::fprintf(stderr, "strata launch: nothing could be started on %s, which is left out for %lld minutes\n",
                 name.c_str(), static_cast<long long>(rest.count()));
}

int LaunchSeries::run() {
    bool is_restart = false;
    const auto stopped = [&](int status) {
        if (plan_.launch.nodes != nullptr) plan_.launch.nodes->dismiss(status);
        return status;
    };
    const auto stopped_between = [&] {
        std::fprintf(stderr, "stopped before the restart; the newest checkpoint is what there is\n");
        return stopped(0);
    };
    while (true) {
        LaunchOutcome outcome;
        std::optional<LaunchJob> job;
        const auto began = std::chrono::steady_clock::now();
        try {
            if (plan_.launch.nodes != nullptr && !await_nodes()) {
                std::fprintf(stderr, "stopped before training began; nothing was started\n");
                return stopped(0);
            }
            std::vector<LaunchHost> hosts = hosts_that_are_there(is_restart);
            if (is_restart && stop_within(0)) return stopped_between();
            if (plan_.elastic.least > 0) {
                std::vector<LaunchHost> rested = hosts;
                std::erase_if(rested, [this](const LaunchHost& host) { return rests(host.name); });
                if (rested.size() >= static_cast<std::size_t>(plan_.elastic.least)) hosts = std::move(rested);
                hosts = elastic_hosts(hosts, plan_.elastic, {plan_.launch.program, plan_.launch.ranks});
            }
            if (is_restart && !hosts.empty())
                std::fprintf(stderr, "strata launch: goes on from the newest checkpoint on %s\n",
                             list_of(hosts).c_str());
            outcome = job.emplace(plan_on(hosts, is_restart)).run();
        } catch (const Error& error) {
            // A host that fell while ranks were being started.
            const bool may_go_on =
                error.code() == Errc::host_lost || (is_restart && error.code() == Errc::cannot_launch);
            if (!may_go_on || restarts_ >= plan_.restarts) {
                stopped(status_of(error));
                throw;
            }
            std::fprintf(stderr, "%s\n", error.what());
            if (job) let_rest(job->host_without_start());
            outcome = {.status = host_lost_status, .may_restart = true, .why = error.what(), .lost = {}, .drained = {}};
        }
        job.reset();
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
        pause_ = next_pause(pause_, std::chrono::steady_clock::now() - began);
        if (stop_within(static_cast<int>(std::chrono::milliseconds{pause_}.count()))) return stopped_between();
    }
}

}  // namespace strata::tools
