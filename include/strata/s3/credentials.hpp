#pragma once
// strata/s3/credentials.hpp - the keys a request is signed with: where they come from, and that nobody prints
// them.

#include <string>
#include <string_view>

#include <strata/core/environment.hpp>
#include <strata/core/secret.hpp>

namespace strata::s3 {

using strata::Secret;  // core/secret.hpp

/// What signs requests.
struct Credentials {
    std::string access_key_id;
    Secret secret_access_key;
    Secret session_token;  ///< empty for keys that do not expire
    std::string source;    ///< for messages: "AWS_ACCESS_KEY_ID of the environment"
};

// core/environment.hpp
using strata::Environment;
using strata::expand_environment;
using strata::process_environment;

/// The first of: `given`, if it has a key; AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; the profile
/// AWS_PROFILE (`default`) of the shared credentials file, AWS_SHARED_CREDENTIALS_FILE or ~/.aws/credentials.
///
///   given  from the configuration; `{env:NAME}` in it is expanded
/// Throws Errc::no_credentials, naming every place that was looked at, or the half that is missing; Errc::bad_value as
/// expand_environment does.
[[nodiscard]] Credentials find_credentials(const Credentials& given, const Environment& environment);

/// `text` without the secrets of `credentials`, without control characters, at most 300 bytes of it: words of a server
/// that go into a message.
[[nodiscard]] std::string presentable(std::string_view text, const Credentials& credentials);

}  // namespace strata::s3

#ifndef STRATA_COMPILED
#include <strata/s3/impl/credentials.ipp>
#endif
