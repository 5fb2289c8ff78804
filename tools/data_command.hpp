#pragma once
// tools/data_command.hpp - `strata data`: what data sets hold, what their caches will take, what an epoch is.

#include <span>
#include <string>

namespace strata::tools {

/// Prints to standard output, progress to standard error if that is a terminal.
///
///   words  behind "data": scan, stats or plan, FILE and options
/// Returns the exit status. Throws Error: bad_argument for words that cannot be understood, interrupted after Ctrl-C,
/// and what configuration and discovery throw.
int data_command(std::span<const std::string> words);

}  // namespace strata::tools
