#pragma once
// tools/sample_command.hpp - `strata sample`: pictures of prompts, from any model, checkpoint or weights, on as many ranks as asked for.

#include <span>
#include <string>

namespace strata::tools {

///   words    behind `sample`
///   returns  the exit status: 0, or as launch_command() has it; the first stop signal ends all ranks at once
/// Throws Error: what is wrong with the words, the prompts and the model, before a rank is started; cannot_launch.
int sample_command(std::span<const std::string> words);

}  // namespace strata::tools
