#pragma once
// strata/s3/impl/s3_client.ipp - a request from its parts to its answer.

#include <algorithm>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/s3/detail/s3_client.hpp>

namespace strata::s3::detail {

inline constexpr std::string_view sha256_of_nothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The options with their `{env:NAME}` replaced; wrong ones are refused here and not by a server.
inline S3Options checked(S3Options options) {
    const auto expand = [&](std::string& text, std::string_view key) {
        text = core::trimmed(expand_environment(text, key, options.environment));
    };
    expand(options.bucket, "aws_bucket_name");
    expand(options.region, "aws_region_name");
    expand(options.endpoint_url, "aws_endpoint_url");
    expand(options.data_prefix, "aws_data_prefix");
    const auto require = [](bool holds, const std::string& what, const std::string& fix) {
        if (!holds) throw Error{Errc::bad_value, what, fix};
    };
    require(!options.bucket.empty(), "aws_bucket_name is empty", "name the bucket");
    const auto is_named_well = [](char c) { return core::is_unreserved(c) && c != '~'; };
    require(std::all_of(options.bucket.begin(), options.bucket.end(), is_named_well),
            "aws_bucket_name '" + options.bucket + "' is no bucket's name",
            "write the name alone, without s3:// and without folders: those belong into aws_data_prefix");
    require(std::all_of(options.region.begin(), options.region.end(), is_named_well),
            "aws_region_name '" + options.region + "' is no region's name", "write it as in eu-central-1");
    require(options.max_pool_connections >= 1, "aws_max_pool_connections is below 1", "use 1 or more");
    require(options.part_requests >= 1, "part_requests is below 1", "use 1 or more");
    require(options.part_bytes >= (5ULL << 20) && options.part_bytes <= (5ULL << 30),
            "part_bytes is not within 5 MiB and 5 GiB", "use 8 MiB: S3 takes no smaller and no larger parts");
    require(options.retry.attempts_at_first >= 1 && options.retry.attempts_at_damage >= 1,
            "attempts_at_first or attempts_at_damage is below 1", "use 1 or more");
    require(options.retry.patience.count() >= 0, "patience is below 0", "use 0 or more");

    const auto variable = [&](const char* name) { return options.environment(name).value_or(""); };
    for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
        if (options.region.empty()) options.region = variable(name);
    if (options.region.empty()) options.region = "us-east-1";
    for (const char* name : {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"})
        if (options.endpoint_url.empty()) options.endpoint_url = variable(name);
    if (options.ca_file.empty()) options.ca_file = variable("AWS_CA_BUNDLE");
    if (!options.data_prefix.empty() && !options.data_prefix.ends_with('/')) options.data_prefix += '/';
    return options;
}

/// The server of the options, for messages: "http://127.0.0.1:9000".
inline http::Endpoint endpoint_of(const S3Options& options) {
    return http::parse_endpoint(!options.endpoint_url.empty()
                                    ? options.endpoint_url
                                    : "https://s3." + options.region +
                                          (options.region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com"));
}

/// True if the name can be a part of a host's name that a wildcard certificate covers.
inline bool is_host_label(std::string_view bucket) noexcept {
    return bucket.size() <= 63 && !bucket.starts_with('-') && !bucket.ends_with('-') &&
           std::all_of(bucket.begin(), bucket.end(),
                       [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '-'; });
}

STRATA_INLINE S3Client::S3Client(S3Options options)
    : options_{checked(std::move(options))},
      credentials_{find_credentials({options_.access_key_id, options_.secret_access_key, options_.session_token, {}},
                                    options_.environment)},
      region_{options_.region},
      pool_{http::HttpOptions{options_.max_pool_connections, options_.connect_timeout, options_.stall_timeout,
                              options_.ca_file}},
      outage_{"S3 server " + endpoint_of(options_).text(), options_.retry, options_.retry_hooks} {
    const bool amazon = options_.endpoint_url.empty();
    const http::Endpoint endpoint = endpoint_of(options_);
    if (options_.addressing == Addressing::virtual_host && !is_host_label(options_.bucket))
        throw Error{Errc::bad_value, "aws_bucket_name '" + options_.bucket + "' cannot be part of a host's name",
                    "use Addressing::path"};
    const bool in_host = options_.addressing == Addressing::virtual_host ||
                         (options_.addressing == Addressing::automatic && amazon && is_host_label(options_.bucket));
    scheme_ = endpoint.scheme;
    host_ = (in_host ? options_.bucket + "." : std::string{}) + endpoint.host;
    bucket_path_ = endpoint.path + (in_host ? std::string{} : "/" + http::percent_encode(options_.bucket));
    server_ = endpoint.text();
    base_ = (amazon ? std::string{"s3:/"} : server_) + "/" + options_.bucket + "/";
}

STRATA_INLINE storage::Sha256 S3Client::key_for(const SigningScope& scope) {
    const std::lock_guard lock{key_mutex_};
    if (key_date_ != scope.date()) {
        key_ = signing_key(credentials_.secret_access_key, scope);
        key_date_ = scope.date();
    }
    return key_;
}

STRATA_INLINE http::HttpAnswer S3Client::attempt(const S3Call& call, const std::string& payload_sha256) {
    const SigningScope scope{signing_time(options_.clock()), region_};
    SignedParts parts{call.method, bucket_path_ + "/" + http::percent_encode(call.key, true),
                      http::canonical_query(call.query), call.headers, payload_sha256};
    if (call.key.empty() && !bucket_path_.empty()) parts.path = bucket_path_;
    parts.headers.push_back({"x-amz-content-sha256", payload_sha256});
    parts.headers.push_back({"x-amz-date", scope.time});
    if (!credentials_.session_token.empty())
        parts.headers.push_back({"x-amz-security-token", credentials_.session_token.reveal()});
    std::vector<http::HttpHeader> headers = parts.headers;
    parts.headers.push_back({"host", host_});
    headers.push_back({"Authorization", authorization(credentials_.access_key_id, key_for(scope), scope, parts)});
    const std::string url = scheme_ + "://" + host_ + parts.path + (parts.query.empty() ? "" : "?" + parts.query);
    return pool_.perform({call.method, url, std::move(headers), call.body, call.into, call.most, call.on_body});
}

STRATA_INLINE void S3Client::count(const S3Call& call, const http::HttpAnswer& answer) noexcept {
    // What never reached a server is not charged.
    if (answer.status != 0 || answer.sent > 0 || answer.failure == http::HttpFailure::broken ||
        answer.failure == http::HttpFailure::stalled)
        counts_.kind[static_cast<std::size_t>(call.kind)].fetch_add(1, std::memory_order_relaxed);
    counts_.bytes_in.fetch_add(answer.received, std::memory_order_relaxed);
    counts_.bytes_out.fetch_add(answer.sent, std::memory_order_relaxed);
}

STRATA_INLINE S3Traffic S3Client::traffic() const noexcept {
    const auto kind = [&](S3Kind k) {
        return counts_.kind[static_cast<std::size_t>(k)].load(std::memory_order_relaxed);
    };
    return {kind(S3Kind::list),
            kind(S3Kind::head),
            kind(S3Kind::get),
            kind(S3Kind::put),
            kind(S3Kind::remove),
            counts_.retries.load(std::memory_order_relaxed),
            counts_.bytes_in.load(std::memory_order_relaxed),
            counts_.bytes_out.load(std::memory_order_relaxed)};
}

STRATA_INLINE http::HttpAnswer S3Client::call(const S3Call& call) {
    const std::string payload_sha256 =
        call.body.empty() ? std::string{sha256_of_nothing} : storage::to_hex(storage::sha256(call.body));
    http::Outage::Request request{outage_};
    for (int number = 1;; ++number) {
        http::HttpAnswer answer = attempt(call, payload_sha256);
        count(call, answer);
        if (answer.status != 0) outage_.answered();  // if not to its end
        std::string wrong_bytes;
        if (answer.failure == http::HttpFailure::none || answer.failure == http::HttpFailure::left) {
            // The end of an upload takes long: S3 says 200 at once and what came of it in the body.
            const bool ok = answer.status / 100 == 2 && !(call.method == "POST" && parse_refusal(answer.text()));
            if (ok) {
                bucket_seen_.store(true, std::memory_order_relaxed);
                if (call.check) wrong_bytes = call.check(answer);
                if (wrong_bytes.empty()) {
                    request.succeeded();
                    return answer;
                }
            } else if (std::find(call.accept.begin(), call.accept.end(), answer.status) != call.accept.end()) {
                request.succeeded();
                return answer;
            } else if (call.method == "HEAD" && answer.status / 100 == 4) {
                // An answer to HEAD has no body that says why: a read of one byte has.
                S3Call same{.kind = S3Kind::get, .action = call.action, .key = call.key};
                same.headers = {{"range", "bytes=0-0"}};
                (void)this->call(same);
            }
        }
        const Verdict verdict = judge(call, answer, wrong_bytes);
        if (verdict.again == Again::never) {
            if (answer.failure == http::HttpFailure::none) request.succeeded();  // it answers, if not as was hoped
            throw verdict.error;
        }
        std::optional<std::chrono::milliseconds> wait;
        std::string failures;
        if (call.attempts > 0 && number >= call.attempts) {
            // enough for what need not succeed
        } else if (verdict.again == Again::at_damage) {
            if (number < options_.retry.attempts_at_damage)
                wait = http::backoff(options_.retry, number, http::jitter());
            if (number > 1) failures = ", " + std::to_string(number) + " times in a row";
        } else {
            wait = request.failed(verdict.why,
                                  http::retry_after(answer.header("retry-after"), std::chrono::system_clock::now()));
            failures = request.failures();
        }
        if (!wait) throw Error{verdict.error.code(), verdict.error.problem() + failures, verdict.error.fix()};
        counts_.retries.fetch_add(1, std::memory_order_relaxed);
        if (options_.retry_hooks.wait)
            options_.retry_hooks.wait(*wait);
        else
            (void)pool_.wait_for(*wait);  // interrupted: the next attempt says so
    }
}

STRATA_INLINE void S3Client::require_bucket() {
    if (bucket_seen_.load(std::memory_order_relaxed)) return;
    (void)call({.kind = S3Kind::list,
                .action = "list",
                .key = {},
                .query = {{"list-type", "2"}, {"max-keys", "1"}},
                .accept = {403}});  // who may not list cannot be told more
    bucket_seen_.store(true, std::memory_order_relaxed);
}

}  // namespace strata::s3::detail
