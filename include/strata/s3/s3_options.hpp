#pragma once
// strata/s3/s3_options.hpp - how an S3 bucket is reached, and what using it has cost.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <strata/http/outage.hpp>
#include <strata/http/retry.hpp>
#include <strata/s3/credentials.hpp>

namespace strata::s3 {

/// Where the bucket's name stands in an address.
enum class Addressing : std::uint8_t {
    automatic,     ///< virtual_host at Amazon where the name can be part of a host's, else path
    path,          ///< https://host/bucket/key
    virtual_host,  ///< https://bucket.host/key
};

/// The keys of a data set of type `aws`, with their `aws_` left out, and what only programs set. `{env:NAME}` in the
/// texts becomes that environment variable.
struct S3Options {
    std::string bucket;         ///< aws_bucket_name
    std::string region;         ///< aws_region_name; empty: AWS_REGION, AWS_DEFAULT_REGION, else us-east-1
    std::string endpoint_url;   ///< aws_endpoint_url; empty: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else Amazon's
    std::string access_key_id;  ///< empty, with the next two: what find_credentials() finds elsewhere
    Secret secret_access_key;
    Secret session_token;
    std::string data_prefix;  ///< what all keys of the store have in front; gets a '/' at its end if it has none

    int max_pool_connections = 128;         ///< requests under way at once, of all threads together
    std::uint64_t part_bytes = 8ULL << 20;  ///< larger objects travel in parts of at least so much; 5 MiB to 5 GiB
    int part_requests = 8;                  ///< parts of one object under way at once

    Addressing addressing = Addressing::automatic;
    bool verify_etag = true;  ///< an ETag of MD5's form is compared with the bytes that came
    std::chrono::milliseconds connect_timeout{10'000};
    std::chrono::seconds stall_timeout{30};  ///< see HttpOptions
    std::filesystem::path ca_file;           ///< certificates to trust; empty: AWS_CA_BUNDLE, else the system's
    http::RetryOptions retry;
    http::RetryHooks retry_hooks;

    std::function<std::chrono::system_clock::time_point()> clock = [] { return std::chrono::system_clock::now(); };
    Environment environment = process_environment;
};

/// What was asked of a bucket; every attempt counts, because it is charged.
struct S3Traffic {
    std::uint64_t list = 0;
    std::uint64_t head = 0;
    std::uint64_t get = 0;
    std::uint64_t put = 0;     ///< parts, beginnings and ends of uploads as well
    std::uint64_t remove = 0;  ///< DELETE
    std::uint64_t retries = 0;
    std::uint64_t bytes_in = 0;   ///< of bodies
    std::uint64_t bytes_out = 0;  ///< of bodies

    S3Traffic& operator+=(const S3Traffic& other) noexcept {
        list += other.list;
        head += other.head;
        get += other.get;
        put += other.put;
        remove += other.remove;
        retries += other.retries;
        bytes_in += other.bytes_in;
        bytes_out += other.bytes_out;
        return *this;
    }
};

/// "3 LIST, 1,024 HEAD, 2,048 GET, 12 PUT, 0 DELETE (2 of them again after a failure), 307.2 MB in, 1.8 MB out".
[[nodiscard]] std::string summary(const S3Traffic& traffic);

}  // namespace strata::s3

#ifndef STRATA_COMPILED
#include <strata/s3/impl/s3_options.ipp>
#endif
