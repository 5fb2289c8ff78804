#include "rank_judgement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include <strata/core/amounts.hpp>

namespace strata::tools::doctor {

namespace {

std::string joined(const std::set<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

std::string in_microseconds(double seconds) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%.0f us", seconds * 1e6);
    return text.data();
}

std::string in_seconds(double seconds) {
    std::array<char, 48> text{};
    std::snprintf(text.data(), text.size(), "%.1f s", seconds);
    return text.data();
}

const std::string firewall =
    "let hosts reach each other on all ports, or name the network that they share: "
    "OMPI_MCA_btl_tcp_if_include=10.0.0.0/24 OMPI_MCA_oob_tcp_if_include=10.0.0.0/24";

/// What the launcher says of itself is "[STnnnn] what. Fix: fix."
std::pair<std::string, std::string> parts_of(const std::string& failure, std::string fix) {
    const std::size_t at = failure.find(". Fix: ");
    if (at == std::string::npos) return {failure, std::move(fix)};
    fix = failure.substr(at + 7);
    if (fix.ends_with('.')) fix.pop_back();
    return {failure.substr(0, at), std::move(fix)};
}

Line judge_start(const RanksFacts& facts) {
    const std::string subject = "ranks";
    std::set<std::string> hosts;
    std::set<std::string> libraries;
    std::string missing;
    std::size_t begun = 0;
    const std::string* early = nullptr;
    for (const RankReport& report : facts.reports) {
        if (report.has_begun()) {
            ++begun;
            hosts.insert(report.host);
        } else {
            missing += (missing.empty() ? "" : ", ") + std::to_string(report.rank);
        }
        if (!report.library.empty()) libraries.insert(report.library);
        if (early == nullptr && !report.failure.empty()) early = &report.failure;
    }
    Line line = ok(subject, std::to_string(begun) + (begun == 1 ? " rank on " : " ranks on ") + joined(hosts) +
                                (libraries.empty() ? "" : ", by " + joined(libraries)));
    const std::string look = "type strata launch -v with the same hosts, and `true` behind --, which says more";
    if (begun < facts.reports.size()) {
        const std::string who = begun == 0 ? "no rank has started" : "ranks " + missing + " have not started";
        const auto [what, fix] = parts_of(facts.failure, look);
        line = problem(subject, who + (facts.is_in_time ? "" : " in time") + (what.empty() ? "" : ": " + what), fix);
    } else if (early != nullptr) {
        const bool is_folder =
            !facts.shared_folder.empty() && early->find(" in " + facts.shared_folder) != std::string::npos;
        line = problem(subject, *early,
                       is_folder ? "look whether its file server runs, and port 2049 is open on every host" : firewall);
    } else if (libraries.empty()) {
        const std::string what = parts_of(facts.failure, look).first;
        line = problem(subject,
                       "MPI has not started on them" + std::string{facts.is_in_time ? "" : " in time"} +
                           (what.empty() ? "" : ": " + what),
                       look);
    } else if (const auto cut = std::find_if(facts.reports.begin(), facts.reports.end(),
                                             [](const RankReport& report) { return !report.is_complete; });
               cut != facts.reports.end()) {
        const std::string what = parts_of(facts.failure, look).first;
        line = problem(subject,
                       "rank " + std::to_string(cut->rank) + " on " + cut->host + " has not said all" +
                           (facts.is_in_time ? ": it ended before" : " in time") + (what.empty() ? "" : "; " + what),
                       "look in dmesg of " + cut->host + " for what ended it");
    } else if (libraries.size() > 1) {
        line = problem(subject, "hosts have several versions of MPI: " + joined(libraries),
                       "install the same version on all hosts");
    }
    line.values = {{"ranks", facts.reports.size()}, {"started", begun}, {"hosts", hosts}, {"mpi", libraries}};
    return line;
}

void judge_pairs(const RanksFacts& facts, std::vector<Line>& lines) {
    std::vector<PairSpeed> pairs;
    for (const RankReport& report : facts.reports) pairs.insert(pairs.end(), report.pairs.begin(), report.pairs.end());
    nlohmann::json values = nlohmann::json::array();
    for (PairSpeed& pair : pairs) {
        for (const RankReport& report : facts.reports)  // rank 0 has no more of a silent one than its number
            if (pair.to == "rank " + std::to_string(report.rank) && report.has_begun()) pair.to += " on " + report.host;
        values.push_back({{"from", pair.from},
                          {"to", pair.to},
                          {"silent", pair.is_silent},
                          {"round_trip_seconds", pair.seconds},
                          {"bytes_per_second", pair.bytes_per_second},
                          {"clock_ahead_seconds", pair.clock_ahead}});
    }
    for (const PairSpeed& pair : pairs)
        if (pair.is_silent)
            lines.push_back(problem("network", pair.to + " does not answer " + pair.from + " by MPI", firewall));
    std::erase_if(pairs, [](const PairSpeed& pair) { return pair.is_silent; });
    if (pairs.empty()) return;
    const auto slower = [](const PairSpeed& a, const PairSpeed& b) { return a.bytes_per_second < b.bytes_per_second; };
    const auto [slowest, fastest] = std::minmax_element(pairs.begin(), pairs.end(), slower);
    const auto text = [](const PairSpeed& pair) {
        return in_microseconds(pair.seconds) + " there and back, " + speed_text(pair.bytes_per_second);
    };
    const bool is_one_host = slowest->from == slowest->to;
    std::string found = is_one_host         ? "between two ranks of " + slowest->from + ": " + text(*slowest)
                        : pairs.size() == 1 ? "between " + slowest->from + " and " + slowest->to + ": " + text(*slowest)
                                            : std::to_string(pairs.size()) + " pairs of hosts; slowest " +
                                                  slowest->from + " and " + slowest->to + ": " + text(*slowest) +
                                                  "; fastest " + speed_text(fastest->bytes_per_second);
    Line line = ok("network", found);
    if (!is_one_host && slowest->bytes_per_second < 1e8)
        line = warning("network", found + ": each step waits for gradients",
                       "name the fast network, where there are several: " + firewall);
    else if (!is_one_host && slowest->bytes_per_second * 4 < fastest->bytes_per_second)
        line = warning("network", found + ": each step waits for the slowest",
                       "look at the cables, ports and networks of " + slowest->from + " and " + slowest->to);
    line.values = {{"pairs", values}};
    lines.push_back(std::move(line));

    const auto worst = std::max_element(pairs.begin(), pairs.end(), [](const PairSpeed& a, const PairSpeed& b) {
        return std::abs(a.clock_ahead) < std::abs(b.clock_ahead);
    });
    if (worst->from == worst->to) return;
    const std::string apart = "clocks of hosts differ by " + in_seconds(std::abs(worst->clock_ahead)) + " at most";
    if (std::abs(worst->clock_ahead) > 1)
        lines.push_back(warning("clocks",
                                apart + ": " + worst->to + " is " + (worst->clock_ahead > 0 ? "ahead of " : "behind ") +
                                    worst->from + "; times in logs and of files mislead",
                                "let NTP keep them: apt install chrony"));
    else
        lines.push_back(ok("clocks", apart));
    lines.back().values = {{"seconds", std::abs(worst->clock_ahead)}};
}

void judge_sum(const RanksFacts& facts, std::vector<Line>& lines) {
    if (facts.reports.size() < 2) return;
    const RankReport& first = facts.reports.front();
    if (first.sum_seconds <= 0) {
        if (first.has_begun() && !first.library.empty())
            lines.push_back(problem("all-reduce", "all ranks together have not made a sum", firewall));
        return;
    }
    const auto ranks = static_cast<double>(facts.reports.size());
    const double speed = static_cast<double>(first.sum_bytes) / first.sum_seconds;
    lines.push_back(ok("all-reduce", core::in_megabytes(first.sum_bytes) + " of " +
                                         std::to_string(facts.reports.size()) + " ranks: " + speed_text(speed) + ", " +
                                         speed_text(speed * 2 * (ranks - 1) / ranks) + " on each link"));
    lines.back().values = {{"bytes", first.sum_bytes},
                           {"seconds", first.sum_seconds},
                           {"link_bytes_per_second", speed * 2 * (ranks - 1) / ranks}};
}

void judge_shared(const RanksFacts& facts, std::vector<Line>& lines) {
    if (facts.shared_folder.empty()) return;
    // Ranks that have not come so far have their own lines.
    const auto has_looked = [](const RankReport& report) { return report.shared.has_value(); };
    if (std::none_of(facts.reports.begin(), facts.reports.end(), has_looked)) return;
    const std::string subject = "shared folder";
    const std::string share =
        "export it from one host and mount it on the others at the same path: /etc/exports SHARED 10.0.0.0/24(rw,sync,no_subtree_check), "
        "/etc/fstab SERVER:SHARED SHARED nfs rw,hard,nfsvers=4.2,_netdev 0 0, port 2049 open";
    std::set<std::string> hosts;
    std::set<std::string> blind;
    std::set<std::string> unasked;
    std::map<std::string, std::string> failures;
    std::set<std::int64_t> users;
    std::set<std::string> squashed;
    double ahead = 0;
    std::string where;
    for (const RankReport& report : facts.reports) {
        if (!report.has_begun()) continue;
        hosts.insert(report.host);
        users.insert(report.uid);
        if (!report.shared) {
            unasked.insert(report.host);
            continue;
        }
        if (!report.shared->failure.empty())
            failures.emplace(report.host, report.shared->failure);
        else if (!report.shared->sees_first || !report.shared->is_seen)
            blind.insert(report.host);
        if (report.shared->owner >= 0 && report.shared->owner != report.uid) squashed.insert(report.host);
        if (std::abs(report.shared->clock_ahead) > std::abs(ahead)) {
            ahead = report.shared->clock_ahead;
            where = report.host;
        }
    }
    const std::string name = facts.shared_folder;
    Line line = ok(subject, name + " is one folder for " + joined(hosts));
    if (!failures.empty())
        line = problem(subject, failures.begin()->first + " cannot write to " + name + ": " + failures.begin()->second,
                       "the same uid on all hosts (id -u), rw in the export; " + share);
    else if (!blind.empty())
        line = warning(subject,
                       name + " is another folder on " + joined(blind) +
                           ": every checkpoint is copied there as a whole, and all else is on the first host",
                       "nothing, where that is meant; else " + share);
    else if (!unasked.empty())
        line = problem(subject, name + " has not answered on " + joined(unasked),
                       "look whether its file server runs there, and port 2049 is open; " + share);
    else if (users.size() > 1)
        line = problem(
            subject,
            name + " is seen by all, as different users: " +
                [&] {
                    std::string text;
                    for (const RankReport& report : facts.reports)
                        if (report.has_begun() && text.find(report.host + " has uid") == std::string::npos)
                            text += (text.empty() ? "" : ", ") + report.host + " has uid " + std::to_string(report.uid);
                    return text;
                }(),
            "give the user one number on all hosts: usermod -u");
    else if (!squashed.empty())
        line = warning(
            subject,
            name + " is one folder, and what " + joined(squashed) +
                " writes belongs to another user (root_squash, or idmapd)",
            "start as the same plain user on all hosts, and one idmapd domain; or no_root_squash in the export");
    else if (std::abs(ahead) > 2)
        line = warning(subject,
                       name + " is one folder; its server's clock is " + in_seconds(std::abs(ahead)) +
                           (ahead > 0 ? " ahead of " : " behind ") + where,
                       "let NTP keep the clocks: apt install chrony");
    line.values = {{"folder", name}, {"hosts", hosts}, {"uids", users}, {"clock_ahead_seconds", ahead}};
    lines.push_back(std::move(line));
}

}  // namespace

std::vector<Line> judge(const RanksFacts& facts) {
    std::vector<Line> lines;
    for (const std::string& host : facts.silent_hosts)
        lines.push_back(problem("host", host + " does not answer the remote shell",
                                "ssh -o BatchMode=yes " + host +
                                    " true must end at once and ask nothing: its name, its power, port 22, a key"));
    if (facts.reports.empty()) return lines;
    lines.push_back(judge_start(facts));
    judge_pairs(facts, lines);
    judge_sum(facts, lines);
    judge_shared(facts, lines);
    for (const RankReport& report : facts.reports)
        for (Line line : report.lines) {
            line.host = report.host;
            lines.push_back(std::move(line));
        }
    return lines;
}

}  // namespace strata::tools::doctor
