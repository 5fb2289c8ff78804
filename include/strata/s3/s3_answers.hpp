#pragma once
// strata/s3/s3_answers.hpp - what the bodies of S3's answers say.

#include <optional>
#include <string>
#include <string_view>

#include <strata/core/error.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::s3 {

/// <Error>: why S3 refused.
struct S3Refusal {
    std::string code;     ///< "NoSuchBucket"; "" if the answer had no such body, as those to HEAD
    std::string message;  ///< the server's words, often empty
    std::string region;   ///< the right one, when the code is about the region
};

/// The <Error> of a body, or nothing if it is something else: not every refusal comes from S3 itself.
[[nodiscard]] std::optional<S3Refusal> parse_refusal(std::string_view body);

/// <ListBucketResult>, version 2.
struct S3Listing {
    std::vector<storage::ObjectInfo> objects;  ///< whole keys; the version is the ETag without quotes
    bool truncated = false;                    ///< more follow
    std::string token;                         ///< of the server's own for what follows; may be empty
};

/// These throw Errc::bad_answer for a body that is not well-formed, has another root, or lacks what it must have.
///
///   source  named in messages
[[nodiscard]] S3Listing parse_listing(std::string_view body, std::string_view source);
[[nodiscard]] std::string parse_upload_id(std::string_view body, std::string_view source);

/// An ETag as it is compared: without quotes and without the mark of weak ones.
[[nodiscard]] std::string plain_etag(std::string_view etag);

namespace detail {
/// "the answer to <source> <why>".
[[nodiscard]] Error bad_answer(std::string_view source, std::string_view why);
}  // namespace detail

}  // namespace strata::s3

#ifndef STRATA_COMPILED
#include <strata/s3/impl/s3_answers.ipp>
#endif
