#include "launch_elastic.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <strata/core/error.hpp>

namespace strata::tools {

namespace {

constexpr std::string_view accumulation = "--gradient_accumulation_steps";

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

std::vector<LaunchHost> elastic_hosts(const std::vector<LaunchHost>& there, const Elastic& elastic,
                                      const ElasticProgram& program) {
    const auto least = static_cast<std::size_t>(std::max(1, elastic.least));
    std::vector<LaunchHost> hosts = there;
    while (hosts.size() > static_cast<std::size_t>(elastic.most)) hosts.pop_back();
    const bool are_enough = hosts.size() >= least;
    while (hosts.size() >= least) {
        std::vector<std::string> words = program.words;
        if (!elastic.keeps_batch || keep_batch(words, program.ranks, ranks_of(hosts))) return hosts;
        hosts.pop_back();
    }
    if (are_enough)
        throw Error{Errc::not_elastic,
                    "on " + std::to_string(there.size()) + " hosts the effective batch of " +
                        std::to_string(program.ranks) + " ranks cannot be kept",
                    "bring hosts back, lower the least of --elastic, choose a " + std::string{accumulation} +
                        " that more numbers divide, or allow another batch with --elastic-batch change"};
    throw Error{Errc::not_elastic,
                std::to_string(there.size()) + (there.size() == 1 ? " host is" : " hosts are") +
                    " left, and --elastic wants " + std::to_string(elastic.least) + " or more",
                "bring hosts back and start again: it goes on from the newest checkpoint"};
}

bool would_grow(const std::vector<LaunchHost>& used, const std::vector<LaunchHost>& all,
                const std::vector<std::string>& come, const Elastic& elastic, const ElasticProgram& program) {
    std::vector<LaunchHost> there;  // in the order of `all`, from which the next start chooses too
    for (const LaunchHost& host : all)
        if (std::find(come.begin(), come.end(), host.name) != come.end() ||
            std::any_of(used.begin(), used.end(), [&](const LaunchHost& one) { return one.name == host.name; }))
            there.push_back(host);
    try {
        return ranks_of(elastic_hosts(there, elastic, program)) > ranks_of(used);
    } catch (const Error&) {  // together they would be none that can be gone on with
        return false;
    }
}

std::chrono::seconds next_pause(std::chrono::seconds last, std::chrono::steady_clock::duration it_ran) {
    using namespace std::chrono_literals;
    return it_ran < 10s ? std::clamp(2 * last, std::chrono::seconds{1s}, std::chrono::seconds{60s}) : 1s;
}

}  // namespace strata::tools
