#pragma once
// tools/doctor_command.hpp - `strata doctor`: what of this machine, of other hosts, folders and buckets would hinder a run.

#include <span>
#include <string>

namespace strata::tools {

///   words    behind `doctor`
///   returns  the exit status: 0, or 1 where there is a problem. Where a file server does not answer it does not return: it ends the
///            process with that status, for nothing else ends a thread that waits for one.
/// Throws Error: bad_argument, and those of a hostfile.
int doctor_command(std::span<const std::string> words);

}  // namespace strata::tools
