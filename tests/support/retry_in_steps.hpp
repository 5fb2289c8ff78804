#pragma once
// tests/support/retry_in_steps.hpp - retries of a store whose waits take no time.

#include <chrono>

#include <strata/http/outage.hpp>

namespace strata_test {

/// Waits that take no time and count as one second: with a patience of two, a request is made three times. Each thread
/// has a clock of its own, so that requests side by side do not shorten each other's time.
inline strata::http::RetryHooks retry_in_steps() {
    static thread_local std::chrono::steady_clock::time_point now{};
    return {.now = [] { return now; }, .wait = [](std::chrono::milliseconds) { now += std::chrono::seconds{1}; }};
}

}  // namespace strata_test
