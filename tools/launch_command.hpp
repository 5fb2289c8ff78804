#pragma once
// tools/launch_command.hpp - `strata launch`: a program on several ranks that stops when it is asked to, and says why it ended.

#include <span>
#include <string>

namespace strata::tools {

///   words    behind `launch`
///   returns  the exit status: 0, that of the first rank that failed, or 128 + signal
/// Throws Error: bad_argument, cannot_launch.
int launch_command(std::span<const std::string> words);

}  // namespace strata::tools
