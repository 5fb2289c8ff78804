#include <algorithm>

#include <gtest/gtest.h>

#include <strata/http/retry.hpp>

namespace {

using namespace std::chrono_literals;
namespace http = strata::http;

TEST(Retry, WaitsDoubleUpToTheLongestWithFullJitter) {
    const http::RetryOptions options{.first_wait = 100ms, .longest_wait = 5000ms};
    EXPECT_EQ(http::backoff(options, 1, 0.0), 0ms);
    EXPECT_EQ(http::backoff(options, 1, 0.5), 50ms);
    EXPECT_EQ(http::backoff(options, 1, 1.0), 100ms);
    EXPECT_EQ(http::backoff(options, 2, 1.0), 200ms);
    EXPECT_EQ(http::backoff(options, 5, 0.25), 400ms);
    EXPECT_EQ(http::backoff(options, 7, 1.0), 5000ms);
    EXPECT_EQ(http::backoff(options, 1'000'000, 1.0), 5000ms);
}

TEST(Retry, ReadsRetryAfterAsSecondsAndAsADate) {
    const auto now = std::chrono::system_clock::from_time_t(1763683200);  // Fri, 21 Nov 2025 00:00:00 GMT
    EXPECT_EQ(http::retry_after("7", now), 7000ms);
    EXPECT_EQ(http::retry_after("0", now), 0ms);
    EXPECT_EQ(http::retry_after("-5", now), 0ms);
    EXPECT_EQ(http::retry_after("Fri, 21 Nov 2025 00:01:30 GMT", now), 90'000ms);
    EXPECT_EQ(http::retry_after("Thu, 20 Nov 2025 00:00:00 GMT", now), 0ms);
    EXPECT_EQ(http::retry_after("", now), std::nullopt);
    EXPECT_EQ(http::retry_after("soon", now), std::nullopt);
    EXPECT_GE(http::retry_after("99999999999999999999999", now), 3'600'000ms);
}

TEST(Retry, DatesThatTheClockCannotHoldAreItsLastMoment) {
    using Clock = std::chrono::system_clock;
    EXPECT_EQ(http::http_date("Fri, 11 Apr 2262 00:00:00 GMT"), Clock::from_time_t(9223286400));
    for (const char* far :
         {"Sat, 12 Apr 2262 00:00:00 GMT", "Fri, 01 Jan 2500 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"}) {
        EXPECT_EQ(http::http_date(far), Clock::time_point::max()) << far;
        EXPECT_GT(http::retry_after(far, Clock::from_time_t(1763683200)), 24h) << far;
    }
    EXPECT_EQ(http::http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Clock::from_time_t(0));
    EXPECT_EQ(http::http_date("no date"), std::nullopt);
}

TEST(Retry, JitterStaysInItsInterval) {
    double least = 1;
    double most = 0;
    for (int i = 0; i < 1000; ++i) {
        const double value = http::jitter();
        least = std::min(least, value);
        most = std::max(most, value);
    }
    EXPECT_GE(least, 0.0);
    EXPECT_LT(most, 1.0);
    EXPECT_LT(least, 0.2);  // wrong once in 10^97 runs
    EXPECT_GT(most, 0.8);
}

}  // namespace
