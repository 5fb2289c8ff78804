#pragma once
// tools/memory_command.hpp - `strata memory`: what a model takes on a rank with usual trainers.

#include <span>
#include <string>

namespace strata::tools {

/// words  behind `strata memory`. Returns the exit status. Throws Errc::bad_argument, cannot_launch.
int memory_command(std::span<const std::string> words);

}  // namespace strata::tools
