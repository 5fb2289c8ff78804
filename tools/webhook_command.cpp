#include "webhook_command.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/value.hpp>
#include <strata/config/webhook_list.hpp>
#include <strata/core/error.hpp>
#include <strata/core/host_name.hpp>
#include <strata/core/printable.hpp>
#include <strata/core/text.hpp>
#include <strata/webhooks/delivery.hpp>
#include <strata/webhooks/event.hpp>
#include <strata/webhooks/request.hpp>
#include <strata/webhooks/transport.hpp>

#include "arguments.hpp"

namespace strata::tools {

namespace {

constexpr std::array known_options{
    Option{"--name", "NAME", "only the webhook that is called so"},
    Option{"--help", "", "prints this text"},
};

void print_help() {
    std::printf(
        "strata webhook test FILE\n"
        "\n"
        "Sends one event `notification` to every webhook of a file, once and without a queue, and says what came\n"
        "back. FILE holds a webhook or a list of them, or is a trainer's configuration in JSON with webhook_config.\n"
        "\n%s\n"
        "Exit status: 0 where all took it; 1 where one did not, or where the file is wrong; 2 for a word that is not\n"
        "understood. Addresses, tokens and secrets are not printed.\n",
        help_lines(known_options).c_str());
}

/// A trainer's configuration says webhook_config; anything else is what that would be.
std::vector<webhooks::WebhookOptions> webhooks_in(const std::filesystem::path& file) {
    const nlohmann::json json = config::load_json(file);
    for (const char* key : {"webhook_config", "--webhook_config"})
        if (json.is_object() && json.contains(key))
            return config::read_webhooks(config::Value{json.at(key), config::Source{file.string()}, "webhook_config"});
    return config::load_webhooks(file);
}

webhooks::QueuedEvent test_event() {
    return webhooks::queued(webhooks::notification_event(webhooks::Severity::info, "A test",
                                                         "strata webhook test: events of runs arrive here"),
                            {.job_id = "webhook-test", .host = core::host_name(), .run = "strata"},
                            webhooks::random_digits() + "-1", std::chrono::system_clock::now(), ".");
}

/// Sends it and prints a line; what is wrong is returned.
std::optional<Error> tried(const webhooks::WebhookOptions& options) {
    webhooks::Transport transport{options};
    const std::vector<webhooks::Delivery::Waiting> events{
        {.event = std::make_shared<const webhooks::QueuedEvent>(test_event())}};
    const auto request = webhooks::make_request(options, events, "strata", ".", 0, std::chrono::system_clock::now());
    const auto begin = std::chrono::steady_clock::now();
    const http::HttpAnswer answer = transport.post(request);
    const auto took = std::chrono::round<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    const webhooks::Judgement judgement = webhooks::judge(answer, std::chrono::system_clock::now());
    const std::string name = "webhook '" + options.name + "' (" + options.server() + ")";
    if (judgement.verdict == webhooks::Verdict::delivered) {
        std::printf("%s: took the event %s, with status %d after %lld ms\n", core::printable(name).c_str(),
                    events.front().event->id.c_str(), answer.status, static_cast<long long>(took.count()));
        return std::nullopt;
    }
    const std::string said =
        core::printable(transport.masked(core::first_line(core::trimmed(answer.text()))).substr(0, 300));
    const std::string what = name + " " + judgement.why + (said.empty() ? "" : ": " + said);
    if (judgement.verdict == webhooks::Verdict::forbidden)
        return Error{Errc::webhook_forbidden, what,
                     answer.status / 100 == 3 ? "write the address that it names, or set allow_redirects to true"
                                              : "correct its address, or set allow_private_addresses to true"};
    return Error{Errc::webhook_failed, what, [&]() -> std::string {
                     if (answer.failure == http::HttpFailure::untrusted)
                         return "name the certificate that signed its own in ca_file";
                     if (answer.failure != http::HttpFailure::none)
                         return "check its address and the network, or set use_proxy to true";
                     if (answer.status == 429) return "wait, and try again";
                     return answer.status >= 500 ? "look at the server" : "correct its address or its auth_token";
                 }()};
}

int test(std::span<const std::string> words) {
    const Arguments arguments{"strata webhook test", words, known_options};
    const std::filesystem::path file = arguments.only_word("FILE");
    const std::optional<std::string> only = arguments.text("--name");
    std::vector<Error> failures;
    std::size_t count = 0;
    for (const webhooks::WebhookOptions& one : webhooks_in(file)) {
        if (only && one.name != *only) continue;
        ++count;
        if (const auto failure = tried(one)) failures.push_back(*failure);
    }
    if (count == 0)
        throw Error{Errc::bad_argument,
                    file.string() + (only ? " has no webhook that is called '" + *only + "'" : " holds no webhook"),
                    "write one, as docs/webhooks.md shows"};
    for (const Error& failure : failures) std::fprintf(stderr, "%s\n", failure.what());
    return failures.empty() ? 0 : 1;
}

}  // namespace

int webhook_command(std::span<const std::string> words) {
    if (!words.empty() && words.front() == "test") {
        const auto rest = words.subspan(1);
        for (const std::string& word : rest)
            if (word == "--help") return print_help(), 0;
        return test(rest);
    }
    if (!words.empty() && (words.front() == "--help" || words.front() == "help")) return print_help(), 0;
    throw Error{Errc::bad_argument,
                words.empty() ? "strata webhook needs a word" : "strata webhook has no command '" + words.front() + "'",
                "type strata webhook test FILE"};
}

}  // namespace strata::tools
