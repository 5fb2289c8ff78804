#pragma once
// tools/config_command.hpp - `strata config`: what configurations ask for, what is wrong with them, other formats of them.

#include <span>
#include <string>

namespace strata::tools {

/// Runs `check`, `explain`, `convert`, `schema` or `reference`.
///
///   words    behind "strata config"
///   returns  0; 1 where a configuration is refused
/// Throws Errc::bad_argument for words it does not understand, Errc::unreadable_config for a folder without a configuration.
int config_command(std::span<const std::string> words);

}  // namespace strata::tools
