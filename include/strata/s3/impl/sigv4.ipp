#pragma once
// strata/s3/impl/sigv4.ipp - the three tasks of signature version 4.

#include <algorithm>
#include <ctime>

#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/s3/sigv4.hpp>

namespace strata::s3 {

namespace detail {

/// Without blanks at its ends, runs of them as one.
inline std::string with_single_blanks(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
        if (!blank)
            result += c;
        else if (!result.empty() && result.back() != ' ')
            result += ' ';
    }
    if (result.ends_with(' ')) result.pop_back();
    return result;
}

/// Lower-case names, sorted, each once.
inline std::vector<http::HttpHeader> canonical_headers(const std::vector<http::HttpHeader>& headers) {
    std::vector<http::HttpHeader> sorted;
    for (const auto& [name, value] : headers) sorted.push_back({core::lower_case(name), with_single_blanks(value)});
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    std::vector<http::HttpHeader> merged;
    for (http::HttpHeader& header : sorted) {
        if (!merged.empty() && merged.back().name == header.name)
            merged.back().value += "," + header.value;
        else
            merged.push_back(std::move(header));
    }
    return merged;
}

inline std::string signed_names(const std::vector<http::HttpHeader>& canonical) {
    std::string names;
    for (const auto& header : canonical) names += (names.empty() ? "" : ";") + header.name;
    return names;
}

inline std::string canonical_request(const SignedParts& parts, const std::vector<http::HttpHeader>& canonical) {
    std::string text = parts.method + "\n" + parts.path + "\n" + parts.query + "\n";
    for (const auto& [name, value] : canonical) text += name + ":" + value + "\n";
    return text + "\n" + signed_names(canonical) + "\n" + parts.payload_sha256;
}

inline std::string scope_text(const SigningScope& scope) {
    return scope.date() + "/" + scope.region + "/" + scope.service + "/aws4_request";
}

}  // namespace detail

STRATA_INLINE std::string signing_time(std::chrono::system_clock::time_point now) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &utc)};
}

STRATA_INLINE std::string canonical_request(const SignedParts& parts) {
    return detail::canonical_request(parts, detail::canonical_headers(parts.headers));
}

STRATA_INLINE std::string string_to_sign(const SigningScope& scope, std::string_view canonical) {
    return "AWS4-HMAC-SHA256\n" + scope.time + "\n" + detail::scope_text(scope) + "\n" +
           storage::to_hex(storage::sha256(core::bytes_of(canonical)));
}

STRATA_INLINE storage::Sha256 signing_key(const Secret& secret_access_key, const SigningScope& scope) {
    const storage::Sha256 date =
        storage::hmac_sha256(core::bytes_of("AWS4" + secret_access_key.reveal()), scope.date());
    const storage::Sha256 region = storage::hmac_sha256(date, scope.region);
    return storage::hmac_sha256(storage::hmac_sha256(region, scope.service), "aws4_request");
}

STRATA_INLINE std::string signature(const storage::Sha256& key, std::string_view text) {
    return storage::to_hex(storage::hmac_sha256(key, text));
}

STRATA_INLINE std::string authorization(std::string_view access_key_id, const storage::Sha256& key,
                                        const SigningScope& scope, const SignedParts& parts) {
    const std::vector<http::HttpHeader> headers = detail::canonical_headers(parts.headers);
    return "AWS4-HMAC-SHA256 Credential=" + std::string{access_key_id} + "/" + detail::scope_text(scope) +
           ", SignedHeaders=" + detail::signed_names(headers) +
           ", Signature=" + signature(key, string_to_sign(scope, detail::canonical_request(parts, headers)));
}

}  // namespace strata::s3
