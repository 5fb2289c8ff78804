#pragma once
// tests/support/courier_time.hpp - a courier whose time is the test's, webhooks for a test's server, and what that has seen.

#include <chrono>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/webhooks/courier.hpp>

#include "fake_http_server.hpp"

namespace strata_test {

/// A time that passes when it is told to, and no luck at all: waits are as long as they may be, but for one millisecond.
struct CourierTime {
    strata::webhooks::Delivery::Time now{std::chrono::hours{1000}};
    std::chrono::system_clock::time_point date{std::chrono::seconds{1'700'000'000}};
    std::vector<std::string> said;
    void pass(std::chrono::milliseconds time) {
        now += time;
        date += time;
    }
    [[nodiscard]] strata::webhooks::CourierHooks hooks() {
        return {.now = [this] { return now; },
                .date = [this] { return date; },
                .jitter = [] { return 0.999; },
                .say = [this](const std::string& line) { said.push_back(line); }};
    }
    [[nodiscard]] std::string all_said() const {
        std::string text;
        for (const std::string& line : said) text += line + "\n";
        return text;
    }
};

inline strata::webhooks::WebhookOptions raw_webhook(const std::string& url) {
    strata::webhooks::WebhookOptions options;
    options.name = "raw";
    options.url = url;
    options.allow_private_addresses = true;
    options.timeout_seconds = 30;
    return options;
}
inline strata::webhooks::WebhookOptions discord_webhook(const std::string& url) {
    strata::webhooks::WebhookOptions options = raw_webhook(url);
    options.name = "discord";
    options.webhook_type = strata::webhooks::WebhookType::discord;
    return options;
}
inline strata::webhooks::Event note_event(const std::string& title,
                                          strata::webhooks::Severity severity = strata::webhooks::Severity::info) {
    return strata::webhooks::notification_event(severity, title, "");
}
/// As often as there is something to do now.
inline void run_courier(strata::webhooks::Courier& courier, bool closing = false) {
    for (int i = 0; i < 1000 && courier.turn(closing); ++i) {
    }
}
using Titles = std::vector<std::string>;
inline Titles titles_of(const std::vector<FakeRequest>& requests) {
    Titles titles;
    for (const FakeRequest& request : requests)
        titles.push_back(nlohmann::json::parse(request.body).value("title", "none"));
    return titles;
}

}  // namespace strata_test
