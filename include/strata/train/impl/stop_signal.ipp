#pragma once
// strata/train/impl/stop_signal.ipp - signal handlers that do nothing but count, and tell the launcher.

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <strata/train/stop_signal.hpp>

namespace strata::train {
namespace detail {

inline volatile std::sig_atomic_t stop_requests = 0;
inline int stop_signals_alive = 0;

/// The launcher's pipe, which is written to when a stop is noted, and of a fault: "FILE:INODE" in STRATA_STOP_NOTED. The inode tells
/// whether that number still is the pipe: a program may have closed it, and opened a file of its own under the number.
inline volatile std::sig_atomic_t launcher_pipe = -1;
inline ino_t launcher_pipe_inode = 0;

inline bool is_launcher_pipe(int file) noexcept {
    struct stat now {};
    return ::fstat(file, &now) == 0 && S_ISFIFO(now.st_mode) && now.st_ino == launcher_pipe_inode;
}

/// Handlers must not look for it.
inline void find_launcher_pipe() {
    const char* const text = std::getenv("STRATA_STOP_NOTED");
    if (text == nullptr) return;
    char* colon = nullptr;
    const int file = static_cast<int>(std::strtol(text, &colon, 10));
    if (*colon == ':') launcher_pipe_inode = static_cast<ino_t>(std::strtoull(colon + 1, nullptr, 10));
    if (!is_launcher_pipe(file)) return;
    ::fcntl(file, F_SETFD, FD_CLOEXEC);  // programs that this one starts are not asked to stop
    launcher_pipe = file;
}

///   what  's': a stop is noted; 'f': this host has a fault; 'e': why the rank ends has been said
inline void tell_launcher(char what) noexcept {
    const int pipe = launcher_pipe;
    if (pipe < 0 || !is_launcher_pipe(pipe)) return;
    [[maybe_unused]] const auto written = ::write(pipe, &what, 1);  // never waits
}

extern "C" inline void strata_on_stop_signal(int signal) {
    const int pipe = launcher_pipe;
    if (stop_requests != 0 && (pipe < 0 || signal != SIGUSR1)) ::_exit(128 + signal);
    stop_requests = 1;
    const int before = errno;
    tell_launcher('s');
    errno = before;
}

}  // namespace detail

STRATA_INLINE StopSignal::StopSignal() {
    if (detail::stop_signals_alive++ == 0) {
        detail::stop_requests = 0;
        detail::find_launcher_pipe();
    }
    struct sigaction action {};
    action.sa_handler = detail::strata_on_stop_signal;
    action.sa_flags = SA_RESTART;  // a read or an MPI call in progress goes on
    sigset_t heard;
    sigemptyset(&heard);
    for (std::size_t i = 0; i < signals.size(); ++i) {
        ::sigaction(signals[i], &action, &former_[i]);
        sigaddset(&heard, signals[i]);
    }
    ::pthread_sigmask(SIG_UNBLOCK, &heard, &former_mask_);
}

STRATA_INLINE StopSignal::~StopSignal() {
    ::pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &former_[i], nullptr);
    --detail::stop_signals_alive;
}

STRATA_INLINE void note_faulty_host() noexcept { detail::tell_launcher('f'); }

STRATA_INLINE void note_reason_is_told() noexcept {
    if (detail::launcher_pipe < 0) detail::find_launcher_pipe();  // a program may fail before its first StopSignal
    detail::tell_launcher('e');
}

STRATA_INLINE bool StopSignal::requested() const noexcept { return detail::stop_requests != 0; }

}  // namespace strata::train
