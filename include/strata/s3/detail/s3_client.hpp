#pragma once
// strata/s3/detail/s3_client.hpp - one bucket: signs, sends, tries again, counts, and says what went wrong.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/core/text.hpp>
#include <strata/http/http_pool.hpp>
#include <strata/http/outage.hpp>
#include <strata/http/url.hpp>
#include <strata/s3/credentials.hpp>
#include <strata/s3/s3_answers.hpp>
#include <strata/s3/s3_options.hpp>
#include <strata/s3/sigv4.hpp>

namespace strata::s3::detail {

inline constexpr std::string_view crc_header_name = "x-amz-meta-strata-crc32c";

/// True if the ETag is the MD5 sum of the bytes: not of objects in parts, nor of those encrypted with keys of one's
/// own.
inline bool is_md5_sum(std::string_view etag, const http::HttpAnswer& answer) noexcept {
    const std::string_view encryption = answer.header("x-amz-server-side-encryption");
    return etag.size() == 32 && (encryption.empty() || encryption == "AES256") &&
           answer.header("x-amz-server-side-encryption-customer-algorithm").empty() &&
           std::all_of(etag.begin(), etag.end(), [](char c) { return core::hex_value(c) >= 0; });
}

/// What a request is counted as.
enum class S3Kind : std::uint8_t { list, head, get, put, remove };

/// A request to the bucket or to one object in it. Views must live until call() returns.
struct S3Call {
    S3Kind kind = S3Kind::get;
    std::string method = "GET";
    std::string_view action{};  ///< for messages: "read"
    std::string key{};          ///< whole and not encoded; empty: the bucket itself
    http::QueryParameters query{};
    std::vector<http::HttpHeader> headers{};  ///< signed as well
    std::span<const std::byte> body{};
    std::span<std::byte> into{};       ///< see HttpRequest
    std::uint64_t most = 64ULL << 20;  ///< see HttpRequest
    std::function<http::BodyUse(const http::HttpAnswer&)>
        on_body{};              ///< see HttpRequest; an answer that is left counts as come
    int attempts = 0;           ///< at most; 0: as RetryOptions say
    std::vector<int> accept{};  ///< statuses that are an answer, besides 2xx
    /// What is wrong with the bytes that came, "" if nothing: then the request is made again.
    std::function<std::string(const http::HttpAnswer&)> check{};
};

/// One bucket. Thread-safe.
class S3Client {
public:
    explicit S3Client(S3Options options);

    /// The answer: a 2xx one, or one of S3Call::accept. Tries again as RetryOptions say. Throws what S3 promises.
    [[nodiscard]] http::HttpAnswer call(const S3Call& call);

    [[nodiscard]] const S3Options& options() const noexcept { return options_; }
    [[nodiscard]] const std::string& base() const noexcept { return base_; }  ///< what where() begins with
    [[nodiscard]] S3Traffic traffic() const noexcept;
    void interrupt() noexcept { pool_.interrupt(); }
    /// Throws no_bucket if the bucket does not exist; asks the server unless an earlier answer has shown that it does.
    void require_bucket();

private:
    /// Whether another attempt may help.
    enum class Again : std::uint8_t {
        never,
        at_damage,  ///< RetryOptions::attempts_at_damage
        in_time,    ///< as long as RetryOptions::patience lasts
    };
    struct Verdict {
        Again again;
        Error error;        ///< if none is left
        std::string why{};  ///< what the server does, of in_time, for the line that says so: "does not answer"
    };

    [[nodiscard]] http::HttpAnswer attempt(const S3Call& call, const std::string& payload_sha256);
    [[nodiscard]] storage::Sha256 key_for(const SigningScope& scope);
    void count(const S3Call& call, const http::HttpAnswer& answer) noexcept;
    [[nodiscard]] Verdict judge(const S3Call& call, const http::HttpAnswer& answer,
                                const std::string& wrong_bytes) const;
    [[nodiscard]] Verdict judge_failure(const std::string& what, const http::HttpAnswer& answer) const;
    [[nodiscard]] Verdict judge_status(const std::string& what, const http::HttpAnswer& answer) const;
    [[nodiscard]] Error refused(const std::string& what, const http::HttpAnswer& answer,
                                const S3Refusal& refusal) const;
    [[nodiscard]] Error skewed(const std::string& what, const http::HttpAnswer& answer) const;

    S3Options options_;
    Credentials credentials_;
    std::string region_;
    std::string scheme_;
    std::string host_;         // with the bucket in front if it is addressed so
    std::string bucket_path_;  // "/base/bucket" or "/base"
    std::string server_;       // for messages: "http://127.0.0.1:9000"
    std::string base_;
    http::HttpPool pool_;

    std::mutex key_mutex_;
    std::string key_date_;
    storage::Sha256 key_{};

    http::Outage outage_;
    std::atomic<bool> bucket_seen_{false};  // a server has ever answered, and had the bucket
    struct Counts {
        std::atomic<std::uint64_t> kind[5];
        std::atomic<std::uint64_t> retries;
        std::atomic<std::uint64_t> bytes_in;
        std::atomic<std::uint64_t> bytes_out;
    } counts_{};
};

}  // namespace strata::s3::detail

#ifndef STRATA_COMPILED
#include <strata/s3/impl/s3_client.ipp>
#include <strata/s3/impl/s3_verdict.ipp>
#endif
