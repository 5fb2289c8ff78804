#pragma once
// strata/options/webhook_options.hpp - WebhookOptions: one server that a run's events are sent to, and how.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/core/secret.hpp>

namespace strata::webhooks {

/// What a server takes.
enum class WebhookType : std::uint8_t {
    discord,  ///< messages of Discord's, with embeds and attached pictures
    raw,      ///< each event as a JSON object
};

/// How bad an event is; the numbers are those of log levels.
enum class Severity : std::uint8_t { critical, error, warning, info, debug };

/// Each once, by the name that configuration files have.
inline constexpr std::array<NamedValue<WebhookType>, 2> webhook_type_names{{
    {"discord", WebhookType::discord},
    {"raw", WebhookType::raw},
}};
inline constexpr std::array<NamedValue<Severity>, 5> severity_names{{
    {"critical", Severity::critical},
    {"error", Severity::error},
    {"warning", Severity::warning},
    {"info", Severity::info},
    {"debug", Severity::debug},
}};

[[nodiscard]] constexpr std::string_view name_of(Severity severity) noexcept {
    return severity_names.at(static_cast<std::size_t>(severity)).name;
}
[[nodiscard]] constexpr std::string_view name_of(WebhookType type) noexcept {
    return webhook_type_names.at(static_cast<std::size_t>(type)).name;
}

/// An entry of `webhook_config`; names are SimpleTuner's where it has them. The address is a secret, too: who has that of a
/// Discord channel may write there.
struct WebhookOptions {
    std::string name{};  ///< in messages and in the queue on disk; unlike those of others
    WebhookType webhook_type = WebhookType::raw;
    Secret url{};         ///< `webhook_url`, `callback_url`
    Secret auth_token{};  ///< sent as X-API-Key; empty: not
    Secret secret{};      ///< events are signed with it; empty: not

    std::string message_prefix{};         ///< empty: what the run calls itself
    Severity log_level = Severity::info;  ///< events that are less bad are not sent
    bool attach_samples = true;
    bool ssl_no_verify = false;
    std::filesystem::path ca_file{};  ///< empty: the system's
    bool allow_private_addresses = false;
    bool allow_redirects = false;
    bool use_proxy = false;
    double connect_timeout_seconds = 5.0;
    double timeout_seconds = 15.0;
    double longest_wait_seconds = 300.0;
    double closing_seconds = 10.0;
    std::int64_t most_waiting = 1000;

    double stage_interval_seconds = 5.0;
    double status_interval_seconds = 30.0;
    double checkpoint_interval_seconds = 0.0;
    double notification_interval_seconds = 0.0;
    double error_interval_seconds = 0.0;
    double fault_interval_seconds = 0.0;

    /// What has a default; the type and the three secrets are read where files are (config::webhook_schema()).
    static void describe(auto& option) {
        using T = WebhookOptions;
        constexpr Range seconds{0.0, 86400.0};
        constexpr Range timeout{0.1, 3600.0};
        option("name", &T::name,
               "What messages and the queue on disk call it; empty: its type, with a number where several are of it");
        option("message_prefix", &T::message_prefix,
               "What messages begin with, in parentheses; empty: the name of the output directory");
        option("log_level", &T::log_level, severity_names, {.help = "Events that are less bad than this are not sent"});
        option("attach_samples", &T::attach_samples, "Samples are sent along as pictures");
        option("ssl_no_verify", &T::ssl_no_verify,
               "Certificates of the server are not looked at: anybody between may read and answer");
        option("ca_file", &T::ca_file,
               "Certificates that are trusted in place of the system's, PEM; empty: the system's");
        option("allow_private_addresses", &T::allow_private_addresses,
               "The server may be this host or of a private network");
        option(
            "allow_redirects", &T::allow_redirects,
            "A server that names another address is followed there, up to 5 times; tokens go to the first server alone");
        option("use_proxy", &T::use_proxy,
               "By way of the proxy that `https_proxy` names; what it connects to is not looked at");
        option("connect_timeout_seconds", &T::connect_timeout_seconds, timeout,
               {.help = "For name, TCP and TLS together", .unit = "seconds"});
        option("timeout_seconds", &T::timeout_seconds, timeout,
               {.help = "For one request, from its begin to the end of its answer", .unit = "seconds"});
        option("longest_wait_seconds", &T::longest_wait_seconds, {1.0, 86400.0},
               {.help = "Between two attempts at a server that fails, at most; what it asks for itself may be longer",
                .unit = "seconds"});
        option("closing_seconds", &T::closing_seconds, {0.0, 3600.0},
               {.help = "At the end of a run, for events that still wait; what is left is the next run's to send",
                .unit = "seconds"});
        option("most_waiting", &T::most_waiting, {1, 100000},
               "Events that wait for the server, at most; of more, those that matter least are dropped, and counted");
        option("stage_interval_seconds", &T::stage_interval_seconds, seconds,
               {.help = "Between two events `lifecycle.stage`; the progress of a stage is sent as it is then",
                .unit = "seconds"});
        option("status_interval_seconds", &T::status_interval_seconds, seconds,
               {.help = "Between two events `training.status`; those between are not sent", .unit = "seconds"});
        option("checkpoint_interval_seconds", &T::checkpoint_interval_seconds, seconds,
               {.help = "Between two events `training.checkpoint`", .unit = "seconds"});
        option("notification_interval_seconds", &T::notification_interval_seconds, seconds,
               {.help = "Between two events `notification`", .unit = "seconds"});
        option("error_interval_seconds", &T::error_interval_seconds, seconds,
               {.help = "Between two events `error`", .unit = "seconds"});
        option("fault_interval_seconds", &T::fault_interval_seconds, seconds,
               {.help = "Between two events `gpu.fault`", .unit = "seconds"});
    }

    /// "https://discord.com" of its address: what may be printed of it.
    [[nodiscard]] std::string server() const {
        const std::string& text = url.reveal();
        const std::size_t host = text.find("://");
        if (host == std::string::npos) return "";
        return text.substr(0, text.find_first_of("/?#", host + 3));
    }
};

}  // namespace strata::webhooks
