#pragma once
// strata/webhooks/impl/transport.ipp - POST, and what redirects may do with it.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <curl/curl.h>

#include <strata/core/text.hpp>
#include <strata/webhooks/impl/delivery.ipp>
#include <strata/webhooks/transport.hpp>

namespace strata::webhooks {

namespace detail {

/// Where a Location leads, seen from an address; empty where that is nowhere.
struct Redirect {
    std::string url{};
    std::string origin{};  ///< scheme, host and port
};
inline Redirect redirect_of(const std::string& from, std::string_view location) {
    const std::unique_ptr<CURLU, void (*)(CURLU*)> url{::curl_url(), &::curl_url_cleanup};
    if (url == nullptr || ::curl_url_set(url.get(), CURLUPART_URL, from.c_str(), 0) != CURLUE_OK) return {};
    if (!location.empty() && ::curl_url_set(url.get(), CURLUPART_URL, std::string{location}.c_str(), 0) != CURLUE_OK)
        return {};
    const auto part = [&](CURLUPart which, unsigned flags = 0) {
        char* value = nullptr;
        if (::curl_url_get(url.get(), which, &value, flags) != CURLUE_OK) return std::string{};
        const std::unique_ptr<char, void (*)(void*)> owned{value, &::curl_free};
        return std::string{value};
    };
    if (!part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty()) return {};
    return {part(CURLUPART_URL), core::lower_case(part(CURLUPART_SCHEME) + "://" + part(CURLUPART_HOST) + ":" +
                                                  part(CURLUPART_PORT, CURLU_DEFAULT_PORT))};
}

/// Of what follows a server's name in an address, those parts between separators that are long enough for a token: a message may have one without the
/// others. Shorter ones are words of messages, too.
inline std::vector<std::string_view> long_parts(std::string_view rest) {
    std::vector<std::string_view> parts;
    for (std::size_t at = 0; at < rest.size();) {
        const std::size_t end = std::min(rest.find_first_of("/?#&=;", at), rest.size());
        if (end - at >= 8) parts.push_back(rest.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

inline http::HttpOptions http_options(const WebhookOptions& options) {
    http::HttpOptions http;
    http.connections = 1;
    http.connect_timeout = milliseconds_of(options.connect_timeout_seconds);
    http.stall_timeout = std::chrono::seconds{3600};  // the total one ends what stalls
    http.total_timeout = milliseconds_of(options.connect_timeout_seconds) + milliseconds_of(options.timeout_seconds);
    http.ca_file = options.ca_file;
    http.verify = !options.ssl_no_verify;
    http.proxy = options.use_proxy;
    http.public_only = !options.allow_private_addresses && !options.use_proxy;
    return http;
}

}  // namespace detail

STRATA_INLINE Transport::Transport(const WebhookOptions& options)
    : options_{options}, pool_{detail::http_options(options)} {}

STRATA_INLINE http::HttpAnswer Transport::post(const Request& request) {
    detail::Redirect at = detail::redirect_of(options_.url.reveal(), "");
    if (at.url.empty()) at.url = options_.url.reveal();
    const std::string first_origin = at.origin;
    http::HttpAnswer answer;
    for (int redirects = 0;; ++redirects) {
        std::vector<http::HttpHeader> headers = request.headers;
        if (at.origin == first_origin)
            headers.insert(headers.end(), request.secret_headers.begin(), request.secret_headers.end());
        answer = pool_.perform({.method = "POST",
                                .url = at.url,
                                .headers = std::move(headers),
                                .body = core::bytes_of(request.body),
                                .most = 1U << 20U,  // what it says beyond is of no use, and no reason to send again
                                .cut = true});
        answer.reason = masked(answer.reason);
        const bool leads_on = answer.failure == http::HttpFailure::none && answer.status / 100 == 3;
        if (!leads_on || !options_.allow_redirects || redirects == 5) return answer;
        const std::string_view location = answer.header("location");
        if (location.empty()) return answer;
        detail::Redirect next = detail::redirect_of(at.url, location);
        const bool loses_tls = at.origin.starts_with("https:") && !next.origin.starts_with("https:");
        if (next.url.empty() || loses_tls) return answer;
        at = std::move(next);
    }
}

STRATA_INLINE std::string Transport::masked(std::string_view text) const {
    std::string masked{text};
    const auto hide = [&](std::string_view secret) {
        if (secret.size() < 2) return;
        for (std::size_t at = 0; (at = masked.find(secret, at)) != std::string::npos; at += 3)
            masked.replace(at, secret.size(), "***");
    };
    const std::string& url = options_.url.reveal();
    hide(url);
    if (const std::string server = options_.server(); server.size() + 1 < url.size()) {
        const std::string_view rest = std::string_view{url}.substr(server.size());
        hide(rest);
        for (const std::string_view part : detail::long_parts(rest)) hide(part);
    }
    hide(options_.auth_token.reveal());
    hide(options_.secret.reveal());
    return masked;
}

}  // namespace strata::webhooks
