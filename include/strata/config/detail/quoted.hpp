#pragma once
// strata/config/detail/quoted.hpp - text and numbers as JSON writes them.

#include <string>
#include <string_view>

#include <strata/core/inline.hpp>

namespace strata::config::detail {

[[nodiscard]] std::string quoted(std::string_view text);
[[nodiscard]] std::string shown(double number);  ///< the shortest text that is this number

}  // namespace strata::config::detail

#ifndef STRATA_COMPILED
#include <strata/config/impl/quoted.ipp>
#endif
