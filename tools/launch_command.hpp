#pragma once
// tools/launch_command.hpp - `strata launch`: a program on several ranks that stops when it is asked to, and says why it ended.

#include <cstdint>
#include <span>
#include <string>

namespace strata::tools {

/// What the first stop signal does to the ranks.
enum class WhenAsked : std::uint8_t {
    finish_step,  ///< they finish a step and save
    end,          ///< they end at once: nothing is lost that is not made again
};

///   words    behind `launch`
///   returns  the exit status: 0, that of the first rank that failed, or 128 + signal
/// Throws Error: bad_argument, cannot_launch.
int launch_command(std::span<const std::string> words);
int launch_command(std::span<const std::string> words, WhenAsked when_asked);

}  // namespace strata::tools
