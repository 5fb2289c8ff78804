#pragma once
// strata/s3/impl/s3_verdict.ipp - which failures pass, and the sentence for those that stay.

#include <array>
#include <cstdlib>

#include <strata/core/inline.hpp>
#include <strata/s3/detail/s3_client.hpp>

namespace strata::s3::detail {

template <std::size_t N>
bool is_one_of(std::string_view code, const std::array<std::string_view, N>& codes) noexcept {
    for (const std::string_view one : codes)
        if (one == code) return true;
    return false;
}

/// Codes below 500 that another attempt may get past: damage on the way, and two writers at once.
inline constexpr std::array<std::string_view, 8> passing_codes{
    "RequestTimeout", "BadDigest",        "XAmzContentSHA256Mismatch",  "IncompleteBody",
    "SlowDown",       "OperationAborted", "ConditionalRequestConflict", "InternalError"};
/// Of these, what asking for long does not get past.
inline constexpr std::array<std::string_view, 3> damage_codes{"BadDigest", "XAmzContentSHA256Mismatch",
                                                              "IncompleteBody"};
inline constexpr std::array<std::string_view, 5> full_codes{"QuotaExceeded", "QuotaExceededException",
                                                            "InsufficientCapacity", "XMinioStorageFull",
                                                            "XMinioAdminBucketQuotaExceeded"};
inline constexpr std::array<std::string_view, 4> token_codes{"ExpiredToken", "InvalidToken", "TokenRefreshRequired",
                                                             "InvalidClientTokenId"};
inline constexpr std::array<std::string_view, 4> region_codes{
    "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"};

STRATA_INLINE S3Client::Verdict S3Client::judge(const S3Call& call, const http::HttpAnswer& answer,
                                                const std::string& wrong_bytes) const {
    const std::string what = "cannot " + std::string{call.action} + " '" + base_ + call.key + "': ";
    if (!wrong_bytes.empty())
        return {
            Again::at_damage,
            Error{
                Errc::bad_answer, what + wrong_bytes,
                "check the network and the server's disks; if this server's ETags are no MD5 sums, set verify_etag to "
                "false"}};
    return answer.failure == http::HttpFailure::none ? judge_status(what, answer) : judge_failure(what, answer);
}

STRATA_INLINE S3Client::Verdict S3Client::judge_failure(const std::string& what, const http::HttpAnswer& answer) const {
    const std::string reason = presentable(answer.reason, credentials_);
    switch (answer.failure) {
        case http::HttpFailure::unresolved:
            return {Again::in_time,
                    Error{Errc::store_unreachable, what + "the name of the host '" + host_ + "' has no address",
                          "correct aws_endpoint_url or aws_region_name, or check this machine's name server"},
                    "has a name without address"};
        case http::HttpFailure::unreachable:
            return {
                Again::in_time,
                Error{Errc::store_unreachable, what + "no connection to " + server_ + " (" + reason + ")",
                      "check that the server runs, that aws_endpoint_url is right, and that no firewall is between"},
                "does not answer"};
        case http::HttpFailure::untrusted:
            return {Again::never,
                    Error{Errc::store_unreachable,
                          what + "the TLS certificate of " + server_ + " is not accepted (" + reason + ")",
                          "set AWS_CA_BUNDLE to the certificate that signed it, or correct aws_endpoint_url"}};
        case http::HttpFailure::stalled:
            return {Again::in_time,
                    Error{Errc::transfer_failed,
                          what + "fewer than 1000 bytes/s moved to or from " + server_ + " for " +
                              std::to_string(options_.stall_timeout.count()) + " s",
                          "check the server's load and the network, or raise stall_timeout"},
                    "has fallen silent"};
        case http::HttpFailure::broken:
            return {Again::in_time,
                    Error{Errc::transfer_failed,
                          what + "the connection to " + server_ + " broke in mid-transfer (" + reason + ")",
                          "check that the server runs and the network holds, then start again"},
                    "broke a connection off"};
        case http::HttpFailure::too_long:
            return {Again::never,
                    Error{Errc::bad_answer, what + server_ + " sent more bytes than were asked for",
                          "check that aws_endpoint_url is the address of an S3 server that serves ranges"}};
        case http::HttpFailure::interrupted:
            return {Again::never, Error{Errc::interrupted, what + "the program is ending", "start it again"}};
        case http::HttpFailure::none:
        case http::HttpFailure::left:
        case http::HttpFailure::forbidden:
        case http::HttpFailure::other:
            break;
    }
    return {Again::never,
            Error{Errc::transfer_failed, what + "the exchange with " + server_ + " failed (" + reason + ")",
                  "check aws_endpoint_url and the network"}};
}

STRATA_INLINE S3Client::Verdict S3Client::judge_status(const std::string& what, const http::HttpAnswer& answer) const {
    const S3Refusal refusal = parse_refusal(answer.text()).value_or(S3Refusal{});
    const bool full = answer.status == 507 || is_one_of(refusal.code, full_codes);
    const bool busy = answer.status == 408 || answer.status == 429 || answer.status == 500 || answer.status == 502 ||
                      answer.status == 503 || answer.status == 504;
    const std::string said =
        std::to_string(answer.status) + (refusal.code.empty() ? "" : " " + presentable(refusal.code, credentials_));
    if (!full && (busy || is_one_of(refusal.code, passing_codes)))
        return {is_one_of(refusal.code, damage_codes) ? Again::at_damage : Again::in_time,
                Error{Errc::transfer_failed, what + server_ + " answered " + said,
                      "check the server's load and its log, or ask with fewer aws_max_pool_connections"},
                "answers " + said};
    return {Again::never, refused(what, answer, refusal)};
}

STRATA_INLINE Error S3Client::skewed(const std::string& what, const http::HttpAnswer& answer) const {
    std::string difference = "differs from";
    if (const auto theirs = http::http_date(answer.header("date"))) {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.clock() - *theirs).count();
        difference = "is " + std::to_string(std::abs(seconds)) + " s " + (seconds > 0 ? "ahead of" : "behind");
    }
    return Error{Errc::clock_skew,
                 what + "this machine's clock " + difference + " the clock of " + server_ + ", and S3 allows 900 s",
                 "set the clock of this machine, or let chrony or systemd-timesyncd keep it"};
}

STRATA_INLINE Error S3Client::refused(const std::string& what, const http::HttpAnswer& answer,
                                      const S3Refusal& refusal) const {
    const std::string& code = refusal.code;
    const std::string keys = " of " + credentials_.source;
    if (code == "SignatureDoesNotMatch")
        return Error{Errc::store_refused,
                     what + server_ + " refuses the signature: the secret access key" + keys + " is wrong",
                     "correct the secret that belongs to this access key"};
    if (code == "InvalidAccessKeyId")
        return Error{Errc::store_refused, what + server_ + " does not know the access key" + keys,
                     "correct the access key, or the address if it belongs to another server"};
    if (is_one_of(code, token_codes))
        return Error{Errc::store_refused,
                     what + server_ + " does not accept the session token" + keys + " (" + code + ")",
                     "get new temporary credentials"};
    if (code == "RequestTimeTooSkewed") return skewed(what, answer);
    if (code == "NoSuchBucket")
        return Error{Errc::no_bucket, what + "the bucket '" + options_.bucket + "' does not exist at " + server_,
                     "correct aws_bucket_name or aws_endpoint_url, or create the bucket"};
    if (code == "NoSuchKey")
        return Error{Errc::not_found, what + "there is no such object", "check the key's spelling and aws_data_prefix"};
    if (code == "NoSuchUpload")
        return Error{Errc::transfer_failed, what + "the upload was ended by somebody else", "start again"};
    if (code == "KeyTooLongError")
        return Error{Errc::bad_object_key, what + "the key is too long for this server", "use shorter names"};
    if (is_one_of(code, full_codes) || answer.status == 507)
        return Error{Errc::no_space, what + server_ + " has no room left (" + (code.empty() ? "507" : code) + ")",
                     "free space there or raise the quota; what was complete before is intact"};
    std::string region = refusal.region.empty() ? std::string{answer.header("x-amz-bucket-region")} : refusal.region;
    if (is_one_of(code, region_codes) || (answer.status / 100 == 3 && !region.empty()))
        return Error{Errc::store_refused,
                     what + "the bucket '" + options_.bucket + "' is in another region than '" + region_ + "'",
                     region.empty() ? "correct aws_region_name and aws_endpoint_url"
                                    : "set aws_region_name to " + presentable(region, credentials_)};
    if (code.empty())
        return Error{Errc::bad_answer,
                     what + server_ + " answered " + std::to_string(answer.status) + ", and not as S3 does",
                     "check that aws_endpoint_url is the address of an S3 server and not of something in front of it"};
    if (answer.status == 403)
        return Error{
            Errc::store_refused,
            what + "the access key" + keys + " has no right to do this (" + presentable(code, credentials_) + ")",
            "give it s3:ListBucket, s3:GetObject, s3:PutObject and s3:DeleteObject; without s3:ListBucket, objects "
            "that do not exist are refused as well"};
    const std::string words = presentable(refusal.message, credentials_);
    return Error{Errc::store_refused,
                 what + server_ + " answered " + std::to_string(answer.status) + " " + presentable(code, credentials_) +
                     (words.empty() ? "" : " (" + words + ")"),
                 "look the code up in the S3 API's list of error responses"};
}

}  // namespace strata::s3::detail
