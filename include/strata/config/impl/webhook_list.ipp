#pragma once
// strata/config/impl/webhook_list.ipp - the keys of webhooks, and the four ways in which people write them down.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/config/impl/key.ipp>
#include <strata/config/impl/load_json.ipp>
#include <strata/config/webhook_list.hpp>
#include <strata/core/environment.hpp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>

namespace strata::config {

namespace detail {

/// Why an address cannot be one of a server; empty: it can. Its words are in no message: it is a secret.
inline std::string_view address_complaint(std::string_view url) {
    const std::string lower = core::lower_case(url.substr(0, 8));
    const std::size_t scheme = lower.starts_with("https://") ? 8 : lower.starts_with("http://") ? 7 : 0;
    if (scheme == 0) return "does not begin with http:// or https://";
    const auto is_bad = [](unsigned char c) { return c <= ' ' || c >= 0x7F || c == '\\'; };
    if (std::any_of(url.begin(), url.end(), is_bad)) return "has a character that no address has";
    const std::string_view server = url.substr(scheme, url.substr(scheme).find_first_of("/?#"));
    if (server.empty() || server.starts_with(':')) return "names no host";
    return server.find('@') != std::string_view::npos ? "holds a user name or a password" : "";
}

/// SimpleTuner's switch for all webhooks of a machine.
inline bool environment_says_no_verify() {
    const auto value = process_environment("SIMPLETUNER_SSL_NO_VERIFY");
    const std::string word = core::lower_case(value.value_or(""));
    return word == "1" || word == "true" || word == "yes" || word == "on";
}

inline webhooks::WebhookOptions read_webhook(const nlohmann::json& json, const Source& source,
                                             const std::string& path) {
    webhooks::WebhookOptions options;
    options.ssl_no_verify = environment_says_no_verify();
    options = webhook_schema().read(json, source, path, std::move(options));
    const auto refuse = [&](std::string_view what, std::string_view fix) {
        const std::string key = json.contains("callback_url") ? "callback_url" : "webhook_url";
        Value{json, source, path + key}.hidden().refuse(Errc::bad_value, what, fix);
    };
    if (options.url.empty())
        refuse("is missing", "add the address that events are sent to; raw webhooks may call it callback_url as well");
    if (const std::string_view complaint = address_complaint(options.url.reveal()); !complaint.empty())
        refuse(complaint, "write the whole address, as in https://example.org/hook");
    return options;
}

/// Names for those that have none, and none twice.
inline void give_names(std::vector<webhooks::WebhookOptions>& all, const std::string& place) {
    std::vector<std::string> taken;
    const auto is_taken = [&](const std::string& name) {
        return std::find(taken.begin(), taken.end(), name) != taken.end();
    };
    for (const auto& one : all) {
        if (one.name.empty()) continue;
        if (is_taken(one.name))
            throw Error{Errc::bad_value, place + ": two webhooks have the name '" + one.name + "'",
                        "give each a name of its own, or none"};
        taken.push_back(one.name);
    }
    for (auto& one : all) {
        if (!one.name.empty()) continue;
        const std::string type{webhooks::name_of(one.webhook_type)};
        one.name = type;
        for (int number = 2; is_taken(one.name); ++number) one.name = type + "-" + std::to_string(number);
        taken.push_back(one.name);
    }
}

/// `value` is an object or a list of them.
inline std::vector<webhooks::WebhookOptions> read_webhook_list(const nlohmann::json& json, const Source& source,
                                                               const std::string& key) {
    std::vector<webhooks::WebhookOptions> all;
    Problems problems;
    if (json.is_object()) {
        problems.during([&] { all.push_back(read_webhook(json, source, key.empty() ? "" : key + ".")); });
    } else {
        for (std::size_t i = 0; i < json.size(); ++i)
            problems.during(
                [&] { all.push_back(read_webhook(json.at(i), source, key + "[" + std::to_string(i) + "].")); });
    }
    if (problems.empty()) problems.during([&] { give_names(all, source.empty() ? "--" + key : source.name()); });
    problems.finish();
    return all;
}

}  // namespace detail

STRATA_INLINE const Schema<webhooks::WebhookOptions>& webhook_schema() {
    static const Schema<webhooks::WebhookOptions> keys = [] {
        using W = webhooks::WebhookOptions;
        Schema<W> s;
        std::vector<Choice<webhooks::WebhookType>> types;
        for (const auto& [name, type] : webhooks::webhook_type_names) types.push_back({name, type});
        s.choice<webhooks::WebhookType>("webhook_type", &W::webhook_type, std::move(types),
                                        "What the server takes: Discord's messages, or each event as a JSON object")
            .required();
        s.secret("webhook_url", &W::url, "Where events are sent to; no message shows more than its host")
            .alias("callback_url");
        s.secret("auth_token", &W::auth_token, "Sent as the header `X-API-Key`; empty: none");
        s.secret("secret", &W::secret,
                 "Key of the header `X-Strata-Signature`, an HMAC-SHA256 of the body; empty: events are not signed");
        s.described();
        return s;
    }();
    return keys;
}

STRATA_INLINE std::vector<webhooks::WebhookOptions> load_webhooks(const std::filesystem::path& file) {
    const nlohmann::json json = load_json(file);
    if (!json.is_object() && !json.is_array())
        throw Error{Errc::bad_value, file.string() + " holds neither a webhook nor a list of them",
                    R"(write {"webhook_type": "discord", "webhook_url": "..."} or a list of such objects)"};
    return detail::read_webhook_list(json, file.string(), "");
}

STRATA_INLINE std::vector<webhooks::WebhookOptions> read_webhooks(const Value& value) {
    if (value.is_null()) return {};
    const nlohmann::json& json = value.json();
    if (json.is_object() || json.is_array()) return detail::read_webhook_list(json, value.source(), value.key());
    if (!json.is_string())
        value.hidden().refuse(Errc::bad_value, "is neither a webhook, nor a list of them, nor text",
                              "write an object, a list, either as JSON text, or the path of a file with either");
    const std::string text = value.hidden().text();
    const std::string_view trimmed = core::trimmed(text);
    if (trimmed.empty()) return {};
    if (trimmed.starts_with('{') || trimmed.starts_with('[')) {
        const std::string source = value.place();
        return detail::read_webhook_list(detail::parse_json(trimmed, source), source, "");
    }
    if (trimmed.find("://") != std::string_view::npos)
        value.hidden().refuse(Errc::bad_value, "is an address alone, which does not say what its server takes",
                              R"(write {"webhook_type": "discord" or "raw", "webhook_url": "..."})");
    const std::filesystem::path file = found_from(std::filesystem::path{trimmed}, value.file());
    if (file.empty())
        value.refuse(Errc::unreadable_config, "names the file '" + std::string{trimmed} + "', which is not there",
                     "correct the path, or write the webhook itself");
    return load_webhooks(file);
}

}  // namespace strata::config
