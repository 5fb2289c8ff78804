#pragma once
// strata/http/impl/url.ipp - percent encoding, and libcurl's reader of addresses.

#include <algorithm>
#include <memory>

#include <curl/curl.h>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/http/url.hpp>

namespace strata::http {

STRATA_INLINE std::string percent_encode(std::string_view text, bool keep_slash) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string encoded;
    encoded.reserve(text.size());
    for (const char c : text) {
        if (core::is_unreserved(c) || (keep_slash && c == '/')) {
            encoded += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            encoded += {'%', digits[byte >> 4U], digits[byte & 15U]};
        }
    }
    return encoded;
}

STRATA_INLINE std::string percent_decode(std::string_view text, bool plus_is_space) {
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const int high = text[i] == '%' && i + 2 < text.size() ? core::hex_value(text[i + 1]) : -1;
        const int low = high >= 0 ? core::hex_value(text[i + 2]) : -1;
        if (low >= 0) {
            decoded += static_cast<char>(16 * high + low);
            i += 2;
        } else {
            decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
        }
    }
    return decoded;
}

STRATA_INLINE std::string canonical_query(const QueryParameters& parameters) {
    QueryParameters encoded;
    encoded.reserve(parameters.size());
    for (const auto& [name, value] : parameters) encoded.emplace_back(percent_encode(name), percent_encode(value));
    std::sort(encoded.begin(), encoded.end());
    std::string query;
    for (const auto& [name, value] : encoded) query += (query.empty() ? "" : "&") + name + "=" + value;
    return query;
}

STRATA_INLINE Endpoint parse_endpoint(std::string_view text) {
    const auto refuse = [](const std::string& why) {
        return Error{Errc::bad_value, "aws_endpoint_url " + why,
                     "write the server's address alone, as in https://s3.example.org or http://127.0.0.1:9000"};
    };
    const std::unique_ptr<CURLU, void (*)(CURLU*)> url{::curl_url(), &::curl_url_cleanup};
    const auto part = [&](CURLUPart which, unsigned flags = 0) {
        char* value = nullptr;
        if (url == nullptr || ::curl_url_get(url.get(), which, &value, flags) != CURLUE_OK) return std::string{};
        const std::unique_ptr<char, void (*)(void*)> owned{value, &::curl_free};
        return std::string{value};
    };
    // A refused address is not repeated in the message: it may hold a password.
    if (text.find("://") == std::string_view::npos) throw refuse("does not begin with http:// or https://");
    if (url == nullptr || ::curl_url_set(url.get(), CURLUPART_URL, std::string{text}.c_str(), 0) != CURLUE_OK)
        throw refuse("is no address");
    Endpoint endpoint{part(CURLUPART_SCHEME), part(CURLUPART_HOST), part(CURLUPART_PATH)};
    if (endpoint.scheme != "http" && endpoint.scheme != "https")
        throw refuse("begins with '" + endpoint.scheme + "://'");
    if (!part(CURLUPART_USER).empty() || !part(CURLUPART_PASSWORD).empty())
        throw refuse("holds a user name or a password");
    if (!part(CURLUPART_QUERY).empty() || !part(CURLUPART_FRAGMENT).empty())
        throw refuse("holds something behind '?' or '#'");
    endpoint.host = core::lower_case(endpoint.host);
    if (const std::string port = part(CURLUPART_PORT, CURLU_NO_DEFAULT_PORT); !port.empty())
        endpoint.host += ":" + port;
    while (endpoint.path.ends_with('/')) endpoint.path.pop_back();
    endpoint.path = percent_encode(percent_decode(endpoint.path), true);
    return endpoint;
}

}  // namespace strata::http
