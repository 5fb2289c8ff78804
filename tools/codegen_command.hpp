#pragma once
// tools/codegen_command.hpp - `strata codegen`: a configuration as a C++ header.

#include <span>
#include <string>

namespace strata::tools {

/// Returns the exit status: 1 where the configuration is refused, with a line `file:line:column: error: ...` for every
/// problem, as compilers write it. Throws Errc::bad_argument for words that are not understood, io_failed.
int codegen_command(std::span<const std::string> words);

}  // namespace strata::tools
