#pragma once
// strata/s3/impl/credentials.ipp - options, environment and the shared credentials file, in this order.

#include <fstream>
#include <map>
#include <optional>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/s3/credentials.hpp>

namespace strata::s3 {

namespace detail {

/// The keys of one profile; nothing if the file has no such profile.
inline std::optional<std::map<std::string, std::string>> profile_of(std::istream& file, std::string_view profile) {
    std::optional<std::map<std::string, std::string>> found;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        const std::string_view text = core::trimmed(line);
        if (text.empty() || text.front() == '#' || text.front() == ';') continue;
        if (text.front() == '[') {
            inside =
                core::trimmed(text.substr(1, text.find(']') == text.npos ? text.npos : text.find(']') - 1)) == profile;
            if (inside && !found) found.emplace();
        } else if (const std::size_t equals = text.find('='); inside && equals != text.npos) {
            (*found)[std::string{core::trimmed(text.substr(0, equals))}] = core::trimmed(text.substr(equals + 1));
        }
    }
    return found;
}

/// `found`, if it has both halves.
inline Credentials require_both(Credentials found, std::string_view id_name, std::string_view secret_name) {
    if (!found.access_key_id.empty() && !found.secret_access_key.empty()) return found;
    const std::string missing{found.access_key_id.empty() ? id_name : secret_name};
    throw Error{Errc::no_credentials,
                "S3 credentials of " + found.source + " are incomplete: " + missing + " is missing",
                "set " + std::string{id_name} + " and " + std::string{secret_name} + " in the same place"};
}

}  // namespace detail

STRATA_INLINE Credentials find_credentials(const Credentials& given, const Environment& environment) {
    if (!given.access_key_id.empty() || !given.secret_access_key.empty() || !given.session_token.empty()) {
        const auto expand = [&](const std::string& text, std::string_view key) {
            return expand_environment(text, key, environment);
        };
        return detail::require_both(
            {std::string{core::trimmed(expand(given.access_key_id, "aws_access_key_id"))},
             std::string{core::trimmed(expand(given.secret_access_key.reveal(), "aws_secret_access_key"))},
             std::string{core::trimmed(expand(given.session_token.reveal(), "aws_session_token"))},
             "the configuration"},
            "aws_access_key_id", "aws_secret_access_key");
    }
    const auto variable = [&](const std::string& name) { return environment(name).value_or(""); };
    if (!variable("AWS_ACCESS_KEY_ID").empty() || !variable("AWS_SECRET_ACCESS_KEY").empty())
        return detail::require_both({variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"),
                                     variable("AWS_SESSION_TOKEN"), "the environment"},
                                    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");

    const std::string profile = environment("AWS_PROFILE").value_or("default");
    std::string path = variable("AWS_SHARED_CREDENTIALS_FILE");
    if (path.empty() && !variable("HOME").empty()) path = variable("HOME") + "/.aws/credentials";
    std::ifstream file{path};
    if (path.empty() || !file)
        throw Error{Errc::no_credentials,
                    "no S3 credentials: aws_access_key_id is not configured, AWS_ACCESS_KEY_ID is not set" +
                        (path.empty() ? std::string{} : " and there is no readable file '" + path + "'"),
                    "set aws_access_key_id and aws_secret_access_key to {env:...}, or export AWS_ACCESS_KEY_ID and "
                    "AWS_SECRET_ACCESS_KEY, or write them into the shared credentials file"};
    auto keys = detail::profile_of(file, profile);
    if (!keys)
        throw Error{Errc::no_credentials, "no S3 credentials: '" + path + "' has no profile [" + profile + "]",
                    "correct AWS_PROFILE, or add the profile to the file"};
    return detail::require_both({(*keys)["aws_access_key_id"], (*keys)["aws_secret_access_key"],
                                 (*keys)["aws_session_token"], "profile [" + profile + "] of '" + path + "'"},
                                "aws_access_key_id", "aws_secret_access_key");
}

STRATA_INLINE std::string presentable(std::string_view text, const Credentials& credentials) {
    std::string shown;
    for (const char c : text) shown += static_cast<unsigned char>(c) < 32 || c == 127 ? ' ' : c;
    for (const std::string* secret :
         {&credentials.secret_access_key.reveal(), &credentials.session_token.reveal(), &credentials.access_key_id}) {
        if (secret->empty()) continue;
        for (std::size_t at = shown.find(*secret); at != std::string::npos; at = shown.find(*secret, at + 3))
            shown.replace(at, secret->size(), "***");
    }
    if (shown.size() > 300) shown.resize(300);
    return std::string{core::trimmed(shown)};
}

}  // namespace strata::s3
