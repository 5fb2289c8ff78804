#pragma once
// strata/train/stop_signal.hpp - SIGINT, SIGTERM, SIGHUP and SIGUSR1 ask a run to finish its step and save.

#include <array>
#include <csignal>

#include <signal.h>

#include <strata/core/inline.hpp>

namespace strata::train {

/// While one lives, the first of these signals only sets a flag; a second one ends the process at once with
/// status 128 + signal. The former handlers come back when it dies. They may nest; the flag is one for the process, and
/// the outermost one clears it.
///
/// SIGUSR1 is among them because mpirun passes it on to every rank and stays alive itself, whereas it
/// answers SIGINT and SIGTERM by killing the job. `strata launch` starts a program with SIGUSR1 blocked, so that a wish
/// that comes early waits until this lets it in; it repeats the wish until it is noted, so there a further SIGUSR1 is
/// the same wish.
class StopSignal {
public:
    StopSignal();
    ~StopSignal();
    StopSignal(const StopSignal&) = delete;
    StopSignal& operator=(const StopSignal&) = delete;

    /// True once a signal has arrived on this rank; other ranks may not have theirs yet.
    [[nodiscard]] bool requested() const noexcept;

private:
    static constexpr std::array<int, 4> signals{SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    std::array<struct sigaction, signals.size()> former_{};
    sigset_t former_mask_{};
};

/// Tells `strata launch` that this rank's host has a fault, so that with --elastic it goes on without it. Nothing without that launcher.
/// While a StopSignal lives. Local.
void note_faulty_host() noexcept;

/// Tells `strata launch` that this rank has said on standard error why it ends, so that the launcher does not look for a reason itself. Nothing
/// without that launcher. Local.
void note_reason_is_told() noexcept;

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/stop_signal.ipp>
#endif
