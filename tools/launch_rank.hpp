#pragma once
// tools/launch_rank.hpp - `strata launch-rank`: watches over one rank for `strata launch`. People do not type it.

#include <span>
#include <string>

namespace strata::tools {

/// mpirun starts one of these for each rank, and it starts the program: so how the program ends is known exactly, on
/// every MPI. Connects to the launcher, does what it says, and ends the program when the launcher is gone.
///
///   words    the launcher's socket; for ranks of other hosts also its addresses
///   returns  0; 1 where its program failed or the launcher is gone
int launch_rank_command(std::span<const std::string> words);

/// The environment variable that tells a program who takes note that it was asked to stop: "FILE:INODE" of a pipe
/// (strata/train/stop_signal.hpp writes to it).
inline constexpr const char* stop_noted_variable = "STRATA_STOP_NOTED";
/// The name that the launcher knows this host by.
inline constexpr const char* host_variable = "STRATA_LAUNCH_HOST";
/// What proves to the launcher that a rank of another host is one of its own. Never on a command line.
inline constexpr const char* key_variable = "STRATA_LAUNCH_KEY";
/// How long a host may be silent.
inline constexpr int lost_after_seconds = 30;

}  // namespace strata::tools
