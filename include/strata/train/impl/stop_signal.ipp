#pragma once
// strata/train/impl/stop_signal.ipp - signal handlers that do nothing but count.

#include <csignal>
#include <cstddef>

#include <unistd.h>

#include <strata/train/stop_signal.hpp>

namespace strata::train {
namespace detail {

inline volatile std::sig_atomic_t stop_requests = 0;

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
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &action, &former_[i]);
}

STRATA_INLINE StopSignal::~StopSignal() {
    for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &former_[i], nullptr);
}

STRATA_INLINE bool StopSignal::requested() const noexcept { return detail::stop_requests != 0; }

}  // namespace strata::train
