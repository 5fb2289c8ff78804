#pragma once
// tools/train_command.hpp - `strata train`: trains what configurations of any format ask for, on as many ranks as they say.

#include <span>
#include <string>

namespace strata::tools {

///   words    behind `train`
///   returns  the exit status: 0, or as launch_command() has it
/// Throws Error: what is wrong with the words, the files and what they ask for, before a rank is started; cannot_launch.
int train_command(std::span<const std::string> words);

}  // namespace strata::tools
