#pragma once
// tools/launch_command.hpp - `strata launch`: a program on several ranks that stops when it is asked to, and says why it ended.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

/// What starts the watchers, without the socket, which comes last.
///
///   hosts    "a:8,b:8"; empty: this host
/// Throws Error: cannot_launch, where it needs mpirun and there is none.
[[nodiscard]] std::vector<std::string> start_words(int ranks, const std::string& hosts);

}  // namespace strata::tools
