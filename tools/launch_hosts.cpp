#include "launch_hosts.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>

#include <strata/core/error.hpp>

namespace strata::tools {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || failed != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
    return number;
}

Error bad_list(std::string_view list) {
    return Error{Errc::cannot_launch, "SLURM_JOB_NODELIST is '" + std::string{list} + "', which is no list of nodes",
                 "start strata launch inside of an allocation (salloc, sbatch), or give --hostfile"};
}

/// Of "n[01-03,7]-ib", and of several brackets: the first varies slowest. None for what has not this form.
std::vector<std::string> names_of_part(std::string_view part) {
    constexpr std::int64_t most = 100'000;
    const std::size_t open = part.find('[');
    const std::size_t close = part.find(']');
    if (open == std::string_view::npos && close == std::string_view::npos) return {std::string{part}};
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
    const std::vector<std::string> behind = names_of_part(part.substr(close + 1));
    std::vector<std::string> names;
    std::string_view ranges = part.substr(open + 1, close - open - 1);
    while (!ranges.empty()) {
        const std::size_t comma = std::min(ranges.find(','), ranges.size());
        const std::string_view range = ranges.substr(0, comma);
        ranges = comma < ranges.size() ? ranges.substr(comma + 1) : std::string_view{};
        const std::size_t dash = range.find('-');
        const std::string_view first = range.substr(0, dash);
        const auto from = whole_number(first);
        const auto to = dash == std::string_view::npos ? from : whole_number(range.substr(dash + 1));
        if (!from || !to || *to < *from || *to - *from > most) return {};
        for (std::int64_t number = *from; number <= *to; ++number) {
            std::string digits = std::to_string(number);
            if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
            for (const std::string& end : behind) names.push_back(std::string{part.substr(0, open)} + digits + end);
            if (names.size() > static_cast<std::size_t>(most)) return {};
        }
    }
    return names;
}

std::vector<std::int64_t> slots_up_to(std::int64_t count) {
    std::vector<std::int64_t> slots(static_cast<std::size_t>(count));
    std::iota(slots.begin(), slots.end(), std::int64_t{0});
    return slots;
}

}  // namespace

int ranks_of(const std::vector<LaunchHost>& hosts) {
    std::size_t ranks = 0;
    for (const LaunchHost& host : hosts) ranks += host.slots.size();
    return static_cast<int>(ranks);
}

std::vector<LaunchHost> hosts_of_file(const std::string& file, std::string_view include, std::string_view exclude) {
    const std::vector<config::Host> all = config::load_hostfile(file);
    std::vector<LaunchHost> hosts;
    for (config::Host& host : config::filter_hosts(all, include, exclude)) {
        const auto whole =
            std::find_if(all.begin(), all.end(), [&](const config::Host& one) { return one.name == host.name; });
        const bool is_filtered = whole->slots != host.slots;
        hosts.push_back({std::move(host.name), std::move(host.slots), is_filtered});
    }
    return hosts;
}

std::vector<std::string> names_of_nodelist(std::string_view list) {
    std::vector<std::string> names;
    const std::string_view whole = list;
    while (!list.empty()) {
        // Up to a comma outside of brackets.
        std::size_t end = 0;
        for (bool inside = false; end < list.size() && (inside || list[end] != ','); ++end)
            inside = list[end] == '[' || (inside && list[end] != ']');
        const std::string_view part = list.substr(0, end);
        list = end < list.size() ? list.substr(end + 1) : std::string_view{};
        const std::vector<std::string> of_part = part.empty() ? std::vector<std::string>{} : names_of_part(part);
        if (of_part.empty()) throw bad_list(whole);
        names.insert(names.end(), of_part.begin(), of_part.end());
    }
    if (names.empty()) throw bad_list(whole);
    return names;
}

std::vector<LaunchHost> hosts_of_slurm(std::string_view nodelist, std::string_view tasks_per_node) {
    const std::vector<std::string> names = names_of_nodelist(nodelist);
    const auto refuse = [&] {
        return Error{Errc::cannot_launch,
                     "SLURM_TASKS_PER_NODE is '" + std::string{tasks_per_node} + "' for " +
                         std::to_string(names.size()) + " nodes",
                     "ask for one task a GPU (#SBATCH --ntasks-per-node=8), or give --hostfile"};
    };
    std::vector<std::int64_t> tasks;
    for (std::string_view rest = tasks_per_node; !rest.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view part = rest.substr(0, comma);
        rest = comma < rest.size() ? rest.substr(comma + 1) : std::string_view{};
        const std::size_t open = part.find("(x");
        const auto count = whole_number(part.substr(0, open));
        const auto times = open == std::string_view::npos || !part.ends_with(')')
                               ? std::optional<std::int64_t>{open == std::string_view::npos ? 1 : 0}
                               : whole_number(part.substr(open + 2, part.size() - open - 3));
        if (!count || *count < 1 || *count > 1024 || !times || *times < 1 || *times > 100'000) throw refuse();
        tasks.insert(tasks.end(), static_cast<std::size_t>(*times), *count);
    }
    if (tasks.size() != names.size()) throw refuse();
    std::vector<LaunchHost> hosts;
    for (std::size_t i = 0; i < names.size(); ++i) hosts.push_back({names[i], slots_up_to(tasks[i])});
    return hosts;
}

std::vector<LaunchHost> first_slots(std::vector<LaunchHost> hosts, int ranks) {
    if (ranks > ranks_of(hosts))
        throw Error{Errc::bad_argument,
                    "-n asks for " + std::to_string(ranks) + " ranks, and the hosts have " +
                        std::to_string(ranks_of(hosts)) + " slots",
                    "give them more slots, name more hosts, or leave -n out"};
    auto left = static_cast<std::size_t>(ranks);
    for (LaunchHost& host : hosts) {
        host.slots.resize(std::min(left, host.slots.size()));
        left -= host.slots.size();
    }
    std::erase_if(hosts, [](const LaunchHost& host) { return host.slots.empty(); });
    return hosts;
}

std::string warning_of_uneven(const std::vector<LaunchHost>& hosts) {
    const bool even = std::all_of(hosts.begin(), hosts.end(), [&](const LaunchHost& host) {
        return host.slots.size() == hosts.front().slots.size();
    });
    if (even) return {};
    std::string list;
    for (const LaunchHost& host : hosts)
        list += (list.empty() ? "" : ", ") + host.name + " " + std::to_string(host.slots.size());
    return "hosts have different numbers of ranks (" + list +
           "): each rank has an equal share of every step, and a step waits for the slowest";
}

std::string warning_of_gpus(const std::string& host, int ranks, int gpus) {
    if (gpus == 0 || ranks == gpus) return {};
    const std::string has = "host " + host + " has " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
                            " on " + std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs");
    return ranks > gpus ? has : has + ", and a rank takes one: the others are idle";
}

std::string host_list(const std::vector<LaunchHost>& hosts) {
    std::string list;
    for (const LaunchHost& host : hosts)
        list += (list.empty() ? "" : ",") + host.name + ":" + std::to_string(host.slots.size());
    return list;
}

}  // namespace strata::tools
