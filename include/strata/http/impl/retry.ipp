#pragma once
// strata/http/impl/retry.ipp - waits between attempts.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <string>

#include <curl/curl.h>

#include <strata/core/inline.hpp>
#include <strata/http/retry.hpp>

namespace strata::http {

STRATA_INLINE std::chrono::milliseconds backoff(const RetryOptions& options, int attempt, double uniform) noexcept {
    const double doubled = static_cast<double>(options.first_wait.count()) * std::exp2(std::clamp(attempt - 1, 0, 40));
    const double longest = std::min(doubled, static_cast<double>(options.longest_wait.count()));
    return std::chrono::milliseconds{static_cast<std::int64_t>(std::lround(uniform * longest))};
}

STRATA_INLINE std::optional<std::chrono::system_clock::time_point> http_date(std::string_view value) {
    const std::time_t seconds = ::curl_getdate(std::string{value}.c_str(), nullptr);
    if (seconds < 0) return std::nullopt;
    using Clock = std::chrono::system_clock;
    if (seconds >= std::chrono::floor<std::chrono::seconds>(Clock::time_point::max().time_since_epoch()).count())
        return Clock::time_point::max();  // its nanoseconds end in 2262, and dates do not
    return Clock::from_time_t(seconds);
}

STRATA_INLINE std::optional<std::chrono::milliseconds> retry_after(std::string_view value,
                                                                   std::chrono::system_clock::time_point now) {
    if (value.empty()) return std::nullopt;
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (end == value.data() + value.size()) {
        constexpr std::int64_t day = 86'400;  // longer waits are cut anyway
        if (error == std::errc::result_out_of_range) return std::chrono::seconds{day};
        if (error == std::errc{}) return std::chrono::seconds{std::clamp<std::int64_t>(seconds, 0, day)};
    }
    const auto date = http_date(value);
    if (!date) return std::nullopt;
    if (*date <= now) return std::chrono::milliseconds{0};
    using std::chrono::milliseconds;
    // Each for itself: from a time before 1970 the difference of nanoseconds would overflow.
    return std::chrono::floor<milliseconds>(date->time_since_epoch()) -
           std::chrono::floor<milliseconds>(now.time_since_epoch());
}

STRATA_INLINE double jitter() {
    thread_local std::mt19937_64 generator{std::random_device{}()};
    return std::uniform_real_distribution<double>{0, 1}(generator);
}

}  // namespace strata::http
