#pragma once
// strata/config/impl/launch_ranks.ipp - how many ranks a launcher starts, and on which machines.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <strata/config/findings.hpp>
#include <strata/config/hostfile.hpp>
#include <strata/config/impl/value.ipp>
#include <strata/config/intent.hpp>
#include <strata/config/reading.hpp>

namespace strata::config::detail {

/// host:port.
inline void read_meeting_point(Reading& keys, LaunchIntent& launch) {
    const std::string point = keys.text("rdzv_endpoint");
    const std::size_t colon = point.rfind(':');
    if (point.empty()) return;
    launch.main_address = point.substr(0, colon);
    if (colon == std::string::npos) return;
    const auto port = number_in<std::int64_t>(std::string_view{point}.substr(colon + 1));
    if (port && *port >= 0 && *port <= 65535)
        launch.main_port = *port;
    else
        keys.refuse("rdzv_endpoint", Errc::bad_value, "is " + point + ", whose port is none from 0 to 65535",
                    "write host:29500");
}
/// How many ranks the machines of a hostfile have room for, behind their filters.
inline void count_hosts(Reading& keys, LaunchIntent& launch, const std::filesystem::path& folder,
                        std::optional<std::int64_t> each) {
    std::vector<Host> all;
    if (!launch.hostfile.empty()) {
        const std::filesystem::path name = launch.hostfile;
        std::error_code error;
        const auto path = std::filesystem::is_regular_file(name, error) ? name : folder / name;
        if (!std::filesystem::is_regular_file(path, error))
            return keys.warn_mapped("hostfile", "launch: hostfile",
                                    "the file is not there, and its machines are not known",
                                    "give its path from here, or from the script");
        try {
            all = load_hostfile(path);
        } catch (const Error& problem) {
            return keys.refuse("hostfile", problem.code(), "names what cannot be read: " + problem.problem(),
                               problem.fix());
        }
    } else if (launch.include.starts_with("localhost:")) {  // slots of this machine
        const auto slots = std::count(launch.include.begin(), launch.include.end(), ',') + 1;
        launch.ranks = slots;
        launch.machines = 1;
        return;
    } else {
        return;
    }
    try {
        all = filter_hosts(all, launch.include, launch.exclude);
    } catch (const Error& problem) {
        return keys.refuse(launch.include.empty() ? "exclude" : "include", problem.code(), problem.problem(),
                           problem.fix());
    }
    if (launch.machines && *launch.machines < static_cast<std::int64_t>(all.size()))
        all.resize(static_cast<std::size_t>(*launch.machines));
    std::int64_t ranks = 0;
    for (const Host& host : all) {
        const auto slots = static_cast<std::int64_t>(host.slots.size());
        if (each && *each > slots)
            return keys.refuse(
                "num_gpus", Errc::bad_value,
                "is " + std::to_string(*each) + ", and '" + host.name + "' has " + std::to_string(slots) + " slots",
                "give at most as many as every machine has");
        ranks += each.value_or(slots);
    }
    launch.machines = static_cast<std::int64_t>(all.size());
    launch.ranks = ranks;
}

/// Ranks of a hostfile by itself.
inline Intent read_hostfile(std::string_view text, const std::string& source, Findings& findings) {
    Intent intent;
    std::int64_t ranks = 0;
    const std::vector<Host> hosts = parse_hostfile(text, source);
    for (const Host& host : hosts) ranks += static_cast<std::int64_t>(host.slots.size());
    intent.launch.ranks = ranks;
    intent.launch.machines = static_cast<std::int64_t>(hosts.size());
    intent.launch.hostfile = source;
    Finding finding;
    finding.effect = Effect::acts;
    finding.place = source;
    finding.to = "launch: hostfile";
    finding.words = std::to_string(ranks) + (ranks == 1 ? " rank on " : " ranks on ") + std::to_string(hosts.size()) +
                    (hosts.size() == 1 ? " machine" : " machines");
    findings.add(std::move(finding));
    return intent;
}

}  // namespace strata::config::detail
