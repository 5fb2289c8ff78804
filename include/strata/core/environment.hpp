#pragma once
// strata/core/environment.hpp - environment variables, and `{env:NAME}` inside configured text.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata {

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

}  // namespace strata

#ifndef STRATA_COMPILED
#include <strata/core/impl/environment.ipp>
#endif
