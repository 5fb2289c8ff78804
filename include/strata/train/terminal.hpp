#pragma once
// strata/train/terminal.hpp - whether a person sees what is written, and times as they read them.

#include <string>

#include <strata/core/inline.hpp>

namespace strata::train {

/// True when standard output or standard error (1 or 2) reaches a terminal. mpirun gives its ranks a pseudo-terminal whatever
/// its own output is, so under mpirun its own stream is asked. STRATA_PROGRESS=live or =plain overrides.
[[nodiscard]] bool is_terminal(int stream);

/// "1:02:03" or "4:05"; seconds below zero count as zero.
[[nodiscard]] std::string clock_text(double seconds);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/terminal.ipp>
#endif
