#pragma once
// strata/storage/credentials.hpp - the keys a request is signed with: where they come from, and that nobody prints
// them.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace strata::storage {

/// Text that must not be seen: it has no operator<< and becomes no string by itself.
class Secret {
public:
    Secret() = default;
    Secret(std::string text) : text_{std::move(text)} {}
    Secret(const char* text) : text_{text} {}
    [[nodiscard]] bool empty() const noexcept { return text_.empty(); }
    [[nodiscard]] const std::string& reveal() const noexcept { return text_; }  ///< for signing and for nothing else

private:
    std::string text_;
};

/// What signs requests.
struct Credentials {
    std::string access_key_id;
    Secret secret_access_key;
    Secret session_token;  ///< empty for keys that do not expire
    std::string source;    ///< for messages: "AWS_ACCESS_KEY_ID of the environment"
};

/// An environment variable's value, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The process's own environment.
[[nodiscard]] std::optional<std::string> process_environment(const std::string& name);

/// `{env:NAME}` inside text becomes that variable's value, which is not looked at again.
///
///   key  named in messages: "aws_secret_access_key"; the text is not
/// Throws Errc::bad_value for a variable that is not set and for a brace that is not closed.
[[nodiscard]] std::string expand_environment(std::string_view text, std::string_view key,
                                             const Environment& environment);

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

}  // namespace strata::storage

#ifndef STRATA_COMPILED
#include <strata/storage/impl/credentials.ipp>
#endif
