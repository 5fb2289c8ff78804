#pragma once
// strata/http/url.hpp - percent encoding as S3 signs it, and the parts of an endpoint.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::http {

/// Every byte but A-Z a-z 0-9 - . _ ~ as %XX with upper-case digits (RFC 3986, section 2).
///
///   keep_slash  leave '/' alone: for paths
[[nodiscard]] std::string percent_encode(std::string_view text, bool keep_slash = false);

/// The other way; what is no %XX stays as it is.
///
///   plus_is_space  read '+' as a blank, as the answers of S3 with encoding-type=url are meant
[[nodiscard]] std::string percent_decode(std::string_view text, bool plus_is_space = false);

using QueryParameters = std::vector<std::pair<std::string, std::string>>;

/// "a=1&b=%20&c=": encoded, then sorted by name and value, as signature version 4 wants it.
[[nodiscard]] std::string canonical_query(const QueryParameters& parameters);

/// Where a server is: "https://host:9000/base".
struct Endpoint {
    std::string scheme;  ///< http or https
    std::string host;    ///< lower case, with ":port" where it is not the scheme's own; what the Host header says
    std::string path;    ///< encoded, without '/' at its end: "" or "/base"

    [[nodiscard]] std::string text() const { return scheme + "://" + host + path; }
};

/// Throws Errc::bad_value, naming aws_endpoint_url, for what is no http or https address, or holds a user name, a
/// password, a query or a fragment.
[[nodiscard]] Endpoint parse_endpoint(std::string_view text);

}  // namespace strata::http

#ifndef STRATA_COMPILED
#include <strata/http/impl/url.ipp>
#endif
