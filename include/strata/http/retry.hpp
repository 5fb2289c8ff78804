#pragma once
// strata/http/retry.hpp - when a request is made again, and after how long.

#include <chrono>
#include <optional>
#include <string_view>

namespace strata::http {

struct RetryOptions {
    std::chrono::milliseconds patience{300'000};  ///< a request is made again for so long after its first failure
    int attempts_at_first = 3;   ///< in all, while the server has never answered: a wrong address shows soon
    int attempts_at_damage = 3;  ///< in all, where what the server answers is not what it should be
    std::chrono::milliseconds first_wait{100};  ///< at most, before the second attempt; doubles from there
    std::chrono::milliseconds longest_wait{20'000};
    std::chrono::milliseconds longest_asked{300'000};  ///< the most a server's Retry-After is followed
    std::chrono::milliseconds announce_pause{60'000};  ///< between two lines that say that a server fails
};

/// Exponential backoff with full jitter: uniform in [0, min(longest_wait, first_wait * 2^(attempt - 1))].
///
///   attempt  attempts that have failed, >= 1
///   uniform  a random number in [0, 1)
[[nodiscard]] std::chrono::milliseconds backoff(const RetryOptions& options, int attempt, double uniform) noexcept;

/// The time a Retry-After header asks for: seconds, or a date (RFC 9110, section 10.2.3). Nothing if it has neither
/// form.
[[nodiscard]] std::optional<std::chrono::milliseconds> retry_after(std::string_view value,
                                                                   std::chrono::system_clock::time_point now);

/// An HTTP date as a point in time; nothing if it is none. A date that the clock cannot hold (after April 2262) is its last
/// moment.
[[nodiscard]] std::optional<std::chrono::system_clock::time_point> http_date(std::string_view value);

/// A uniform random number in [0, 1); each thread has a generator of its own, so ranks and threads part ways.
[[nodiscard]] double jitter();

}  // namespace strata::http

#ifndef STRATA_COMPILED
#include <strata/http/impl/retry.ipp>
#endif
