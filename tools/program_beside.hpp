#pragma once
// tools/program_beside.hpp - program_beside(): a program that is built and installed beside the command.

#include <string>

namespace strata::tools {

/// The path of `name` in the folder of the running program. Throws Errc::cannot_launch where it is not there.
///
///   target  of the build, for the message: "strata_trainer"
[[nodiscard]] std::string program_beside(const std::string& name, const std::string& target);

}  // namespace strata::tools
