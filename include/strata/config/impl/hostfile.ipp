#pragma once
// strata/config/impl/hostfile.ipp - lines of hosts, and filters of them.

#include <algorithm>
#include <numeric>
#include <optional>

#include <strata/config/hostfile.hpp>
#include <strata/config/impl/key.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/config/impl/value.ipp>
#include <strata/config/key.hpp>
#include <strata/core/error.hpp>

namespace strata::config {

namespace detail {

/// The parts of a text between separators, without those that are empty.
inline std::vector<std::string_view> parts_of(std::string_view text, std::string_view separators) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = text.find_first_not_of(separators); begin != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = text.find_first_not_of(separators, end);
    }
    return parts;
}

/// A host of a filter, with its slots; none: all of them.
inline Host filter_part(std::string_view part, const std::vector<Host>& hosts, const std::string& flag) {
    const auto refuse = [&](const std::string& what, const std::string& fix) {
        throw Error{Errc::bad_argument, flag + " " + what, fix};
    };
    const std::size_t colon = part.find(':');
    Host one{std::string{part.substr(0, colon)}, {}};
    const auto host =
        std::find_if(hosts.begin(), hosts.end(), [&](const Host& known) { return known.name == one.name; });
    if (host == hosts.end()) {
        std::vector<std::string_view> names;
        for (const Host& known : hosts) names.push_back(known.name);
        const std::string_view near = nearest_name(one.name, names);
        refuse("names the host '" + one.name + "', which the hostfile does not have",
               near.empty() ? "use a host of the hostfile" : "did you mean '" + std::string{near} + "'");
    }
    if (colon == std::string_view::npos) return *host;
    for (const std::string_view word : parts_of(part.substr(colon + 1), ",")) {
        const auto slot = number_in<std::int64_t>(word);
        if (!slot || std::find(host->slots.begin(), host->slots.end(), *slot) == host->slots.end())
            refuse("names slot '" + std::string{word} + "' of '" + one.name + "', which has " +
                       std::to_string(host->slots.size()) + " slots",
                   "use slots from 0 to " + std::to_string(host->slots.size() - 1));
        if (std::find(one.slots.begin(), one.slots.end(), *slot) == one.slots.end()) one.slots.push_back(*slot);
    }
    if (one.slots.empty())
        refuse("has no slots behind '" + one.name + ":'", "write " + one.name + ":0,1, or " + one.name + " for all");
    std::sort(one.slots.begin(), one.slots.end());
    return one;
}

/// What is wrong with a host's name: it is a word of `mpirun --host a:8,b:8` and of ssh's command line. Empty: nothing.
inline std::string wrong_of_name(std::string_view name) {
    if (name.front() == '-') return "begins with '-', as options do";
    if (name.find(':') != std::string_view::npos)
        return "has a ':', as addresses of IPv6 have, which mpirun takes for slots";
    if (name.find(',') != std::string_view::npos) return "has a ','";
    return {};
}

}  // namespace detail

STRATA_INLINE std::vector<Host> parse_hostfile(std::string_view text, const std::string& source) {
    std::vector<Host> hosts;
    std::vector<std::string> bare;  // names of those without slots=
    std::string problems;
    std::string fixes;
    int line_number = 0;
    const auto refuse = [&](const std::string& what, const std::string& fix) {
        problems += (problems.empty() ? "" : "; ") + source + ":" + std::to_string(line_number) + ": " + what;
        if (fixes.find(fix) == std::string::npos) fixes += (fixes.empty() ? "" : "; ") + fix;
    };
    while (!text.empty()) {
        ++line_number;
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        line = line.substr(0, line.find('#'));
        const std::vector<std::string_view> words = detail::parts_of(line, " \t\r");
        if (words.empty()) continue;
        // A name alone is one slot, and again one each time: Open MPI's form, and that of PBS.
        const bool is_bare = words.size() == 1;
        std::optional<std::int64_t> slots = is_bare ? std::optional<std::int64_t>{1} : std::nullopt;
        bool is_wrong = words[0].find('=') != std::string_view::npos;
        for (std::size_t i = 1; i < words.size(); ++i) {
            if (words[i].starts_with("slots=") && !slots)
                slots = detail::number_in<std::int64_t>(words[i].substr(6));
            else if (!words[i].starts_with("max_slots=") && !words[i].starts_with("max-slots="))
                is_wrong = true;
        }
        const std::string name{words[0]};
        const auto known = std::find_if(hosts.begin(), hosts.end(), [&](const Host& one) { return one.name == name; });
        const bool was_bare = std::find(bare.begin(), bare.end(), name) != bare.end();
        if (const std::string wrong = detail::wrong_of_name(name); !wrong.empty()) {
            refuse("names the host '" + name + "', which " + wrong, "write the host's name, or its IPv4 address");
        } else if (is_wrong || !slots || *slots < 1 || *slots > 100'000) {
            refuse("is no line of a hostfile", "write lines such as `worker-0 slots=8`");
        } else if (known != hosts.end() && is_bare && was_bare) {
            known->slots.push_back(static_cast<std::int64_t>(known->slots.size()));
        } else if (known != hosts.end()) {
            refuse("names '" + name + "' a second time", "name each host once, with all of its slots");
        } else {
            if (is_bare) bare.push_back(name);
            std::vector<std::int64_t> all(static_cast<std::size_t>(*slots));
            std::iota(all.begin(), all.end(), std::int64_t{0});
            hosts.push_back({name, std::move(all)});
        }
    }
    if (!problems.empty()) throw Error{Errc::unreadable_config, problems, fixes};
    if (hosts.empty())
        throw Error{Errc::unreadable_config, source + " names no hosts", "write lines such as `worker-0 slots=8`"};
    return hosts;
}

STRATA_INLINE std::vector<Host> load_hostfile(const std::filesystem::path& file) {
    return parse_hostfile(detail::checked_text(detail::read_text(file), file.string()), file.string());
}

STRATA_INLINE std::vector<Host> filter_hosts(const std::vector<Host>& hosts, std::string_view include,
                                             std::string_view exclude) {
    if (!include.empty() && !exclude.empty())
        throw Error{Errc::bad_argument, "--include and --exclude are both given", "keep one of them"};
    const bool includes = !include.empty();
    std::vector<Host> named;
    for (const std::string_view part : detail::parts_of(includes ? include : exclude, "@")) {
        Host one = detail::filter_part(part, hosts, includes ? "--include" : "--exclude");
        const auto before =
            std::find_if(named.begin(), named.end(), [&](const Host& other) { return other.name == one.name; });
        if (before == named.end()) {
            named.push_back(std::move(one));
            continue;
        }
        std::vector<std::int64_t> both;
        std::set_union(before->slots.begin(), before->slots.end(), one.slots.begin(), one.slots.end(),
                       std::back_inserter(both));
        before->slots = std::move(both);
    }
    std::vector<Host> left;
    for (const Host& host : hosts) {
        const auto found =
            std::find_if(named.begin(), named.end(), [&](const Host& other) { return other.name == host.name; });
        Host one{host.name, {}};
        if (found == named.end()) {
            if (!includes) one.slots = host.slots;
        } else if (includes) {
            one.slots = found->slots;
        } else {
            std::set_difference(host.slots.begin(), host.slots.end(), found->slots.begin(), found->slots.end(),
                                std::back_inserter(one.slots));
        }
        if (!one.slots.empty()) left.push_back(std::move(one));
    }
    if (left.empty())
        throw Error{Errc::bad_argument, std::string{includes ? "--include" : "--exclude"} + " leaves no slot",
                    "leave at least one"};
    return left;
}

}  // namespace strata::config
