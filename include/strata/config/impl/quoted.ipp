#pragma once
// strata/config/impl/quoted.ipp - text and numbers as JSON writes them.

#include <nlohmann/json.hpp>

#include <strata/config/detail/quoted.hpp>
#include <strata/core/option_check.hpp>

namespace strata::config::detail {

STRATA_INLINE std::string quoted(std::string_view text) { return nlohmann::json(text).dump(); }

STRATA_INLINE std::string shown(double number) { return OptionCheck::shown(number); }

}  // namespace strata::config::detail
