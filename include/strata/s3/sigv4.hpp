#pragma once
// strata/s3/sigv4.hpp - AWS signature version 4, as S3 uses it: the path encoded once and never normalised.
//
// Source: Amazon S3 API reference, "Authenticating Requests: Using the Authorization Header".

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <strata/http/http_pool.hpp>
#include <strata/s3/credentials.hpp>
#include <strata/storage/digest.hpp>

namespace strata::s3 {

/// The parts of a request that its signature covers.
struct SignedParts {
    std::string method;                     ///< "GET"
    std::string path;                       ///< percent_encode(..., true), begins with '/'
    std::string query;                      ///< canonical_query(...)
    std::vector<http::HttpHeader> headers;  ///< all that are signed; host and x-amz-date must be among them
    std::string payload_sha256;             ///< of the body, in hex
};

/// What a signature is good for.
struct SigningScope {
    std::string time;    ///< signing_time(...)
    std::string region;  ///< "us-east-1"
    std::string service = "s3";

    [[nodiscard]] std::string date() const { return time.substr(0, 8); }
};

/// "20130524T000000Z": UTC, ISO 8601 without separators.
[[nodiscard]] std::string signing_time(std::chrono::system_clock::time_point now);

/// Task 1: the request as text. Header names in lower case and sorted, values of one name joined by ',', runs of white
/// space in values as one blank.
[[nodiscard]] std::string canonical_request(const SignedParts& parts);

/// Task 2.
[[nodiscard]] std::string string_to_sign(const SigningScope& scope, std::string_view canonical_request);

/// Task 3, first half: the key of one day, region and service.
[[nodiscard]] storage::Sha256 signing_key(const Secret& secret_access_key, const SigningScope& scope);

/// Task 3, second half: 64 hexadecimal digits.
[[nodiscard]] std::string signature(const storage::Sha256& key, std::string_view string_to_sign);

/// The value of the Authorization header.
///
///   key  signing_key(...) of the same scope
[[nodiscard]] std::string authorization(std::string_view access_key_id, const storage::Sha256& key,
                                        const SigningScope& scope, const SignedParts& parts);

}  // namespace strata::s3

#ifndef STRATA_COMPILED
#include <strata/s3/impl/sigv4.ipp>
#endif
