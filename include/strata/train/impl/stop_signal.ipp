#pragma once
// strata/train/impl/stop_signal.ipp - signal handlers that do nothing but count.

#include <array>
#include <csignal>
#include <cstddef>

#include <unistd.h>

#include <strata/train/stop_signal.hpp>

namespace strata::train {
namespace detail {

inline constexpr std::array<int, 3> stop_signals{SIGINT, SIGTERM, SIGUSR1};
inline volatile std::sig_atomic_t stop_requests = 0;
inline std::array<struct sigaction, stop_signals.size()> former_actions{};

extern "C" inline void strata_on_stop_signal(int signal) {
    if (stop_requests != 0) ::_exit(128 + signal);
    stop_requests = 1;
}

}  // namespace detail

STRATA_INLINE StopSignal::StopSignal() {
    detail::stop_requests = 0;
    struct sigaction action {};
    action.sa_handler = detail::strata_on_stop_signal;
    action.sa_flags = SA_RESTART;  // a read or an MPI call in progress goes on
    for (std::size_t i = 0; i < detail::stop_signals.size(); ++i)
        ::sigaction(detail::stop_signals[i], &action, &detail::former_actions[i]);
}

STRATA_INLINE StopSignal::~StopSignal() {
    for (std::size_t i = 0; i < detail::stop_signals.size(); ++i)
        ::sigaction(detail::stop_signals[i], &detail::former_actions[i], nullptr);
}

STRATA_INLINE bool StopSignal::requested() const noexcept { return detail::stop_requests != 0; }

}  // namespace strata::train
