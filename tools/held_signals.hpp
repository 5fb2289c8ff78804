#pragma once
// tools/held_signals.hpp - the signals that ask `strata launch` and `strata train` to stop, held back from before main on.

#include <array>
#include <csignal>

#include <signal.h>

namespace strata::tools {

/// What asks a launcher, and a trainer that it started, to stop.
inline constexpr std::array<int, 4> stop_signals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// The stop signals, but for those that were ignored when the process started: `nohup` means it.
[[nodiscard]] sigset_t heeded_stop_signals();

/// One of them has come, is held, and nobody has read it yet.
[[nodiscard]] bool is_stop_held();

/// Blocks all of stop_signals, so that the kernel keeps one that arrives until somebody reads it. For `strata launch` and `train`
/// this has happened when main begins, before libraries were initialised; a further call does no harm.
void hold_stop_signals();

}  // namespace strata::tools
