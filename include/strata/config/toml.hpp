#pragma once
// strata/config/toml.hpp - parse_toml(): TOML as a Document.

#include <string>
#include <string_view>

#include <strata/config/document.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// TOML 1.0. Members of an object are in the order of the text; dates and times are text. Throws
/// Errc::unreadable_config, with line and column, for what is no TOML (a key that stands twice included).
[[nodiscard]] Document parse_toml(std::string_view text, std::string source);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/toml.ipp>
#endif
