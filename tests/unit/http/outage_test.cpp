#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/http/outage.hpp>

namespace {

using namespace std::chrono_literals;
using strata::http::Outage;
using strata::http::RetryOptions;

/// A server of a test, whose clock moves when the test says so.
struct Patient {
    std::chrono::steady_clock::time_point now{};
    std::vector<std::string> lines;
    Outage outage;

    explicit Patient(const RetryOptions& options = {})
        : outage{"S3 server http://s",
                 options,
                 {.now = [this] { return now; }, .say = [this](const std::string& line) { lines.push_back(line); }}} {
        outage.answered();
    }
};

/// Fails again and again, each time after the wait it is told, until it is told to stop; returns the attempts.
int attempts_until_given_up(Patient& server, Outage::Request& request) {
    for (int attempts = 1;; ++attempts) {
        const auto wait = request.failed("does not answer", std::nullopt);
        if (!wait) return attempts;
        server.now += *wait;
    }
}

TEST(Outage, ARequestIsMadeAgainForATimeAndNotForANumber) {
    for (const auto longest : {1ms, 500ms, 20'000ms}) {
        Patient server{{.patience = 10s, .longest_wait = longest}};
        const auto begin = server.now;
        Outage::Request request{server.outage};
        const int attempts = attempts_until_given_up(server, request);
        EXPECT_EQ(server.now - begin, 10s) << "the last attempt is made when the time is up";
        if (longest == 1ms) {
            EXPECT_GT(attempts, 10'000);
        }
        EXPECT_EQ(request.failures(), ", " + std::to_string(attempts) + " times in 10 s");
    }
}

TEST(Outage, FiveMinutesUnlessSomethingElseIsSaid) {
    Patient server;
    const auto begin = server.now;
    Outage::Request request{server.outage};
    (void)attempts_until_given_up(server, request);
    EXPECT_EQ(server.now - begin, 5min);
}

TEST(Outage, WithoutPatienceTheFirstFailureIsTheLast) {
    Patient server{{.patience = 0s}};
    Outage::Request request{server.outage};
    EXPECT_EQ(request.failed("does not answer", 7s), std::nullopt);
    EXPECT_EQ(request.failures(), "");
    EXPECT_TRUE(server.lines.empty()) << "nothing is tried again";
}

TEST(Outage, AServerThatNeverAnsweredIsGivenUpAfterAFewAttempts) {
    std::vector<std::string> lines;
    Outage outage{"S3 server http://s",
                  {.attempts_at_first = 3},
                  {.now = [] { return std::chrono::steady_clock::time_point{}; },
                   .say = [&](const std::string& line) { lines.push_back(line); }}};
    Outage::Request request{outage};
    EXPECT_TRUE(request.failed("does not answer", std::nullopt).has_value());
    EXPECT_TRUE(request.failed("does not answer", std::nullopt).has_value());
    EXPECT_EQ(request.failed("does not answer", std::nullopt), std::nullopt);
    EXPECT_EQ(request.failures(), ", 3 times in a row");
    EXPECT_TRUE(lines.empty());

    outage.answered();  // another request got through
    Outage::Request later{outage};
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(later.failed("does not answer", std::nullopt).has_value()) << i;
}

TEST(Outage, WhatAServerAsksForIsWaitedButNotBeyondTheEnd) {
    Patient server{{.patience = 60s, .longest_asked = 20s}};
    Outage::Request request{server.outage};
    EXPECT_EQ(request.failed("answers 503", 5s), 5s);
    EXPECT_EQ(request.failed("answers 503", 500s), 20s);
    server.now += 55s;
    EXPECT_EQ(request.failed("answers 503", 20s), 5s);
}

TEST(Outage, TwoLinesAnOutageWhateverTheNumberOfRequests) {
    Patient server{{.patience = 5min}};
    Outage::Request first{server.outage}, second{server.outage}, third{server.outage};
    for (int i = 0; i < 3; ++i)
        for (Outage::Request* request : {&first, &second, &third}) {
            EXPECT_TRUE(request->failed("does not answer", std::nullopt));
            server.now += 4s;
        }
    Outage::Request untroubled{server.outage};
    untroubled.succeeded();
    EXPECT_EQ(server.lines.size(), 1U) << "one that never failed proves nothing";
    for (Outage::Request* request : {&second, &first, &third}) request->succeeded();
    EXPECT_EQ(server.lines, (std::vector<std::string>{
                                "S3 server http://s does not answer; trying again for 5 min",
                                "S3 server http://s answers again, after 36 s",
                            }));
}

TEST(Outage, AServerThatStumblesAgainAndAgainIsSpokenOfOnceAMinute) {
    Patient server{{.patience = 5min, .announce_pause = 60s}};
    for (int second = 0; second < 180; ++second) {
        Outage::Request request{server.outage};
        EXPECT_TRUE(request.failed("answers 503 SlowDown", std::nullopt));
        request.succeeded();
        server.now += 1s;
    }
    EXPECT_EQ(server.lines.size(), 6U);  // 0, 60 and 120 s, and that each is over

    // An outage in the pause is spoken of when it outlasts it.
    Outage::Request request{server.outage};
    server.now -= 30s;
    EXPECT_TRUE(request.failed("does not answer", std::nullopt));
    EXPECT_EQ(server.lines.size(), 6U);
    server.now += 30s;
    EXPECT_TRUE(request.failed("does not answer", std::nullopt));
    EXPECT_EQ(server.lines.size(), 7U);
}

TEST(Outage, AfterARequestWasGivenUpTheNextOutageIsSaidAnew) {
    Patient server{{.patience = 10s, .announce_pause = 0s}};
    Outage::Request lost{server.outage};
    (void)attempts_until_given_up(server, lost);
    EXPECT_EQ(server.lines.size(), 1U);
    Outage::Request next{server.outage};
    EXPECT_TRUE(next.failed("does not answer", std::nullopt));
    EXPECT_EQ(server.lines.size(), 2U);
}

TEST(Outage, ThreadsSpeakOneAtATime) {
    std::atomic<int> speaking{0};
    std::atomic<int> lines{0};
    Outage outage{"server",
                  {.announce_pause = 0s},
                  {.now = [] { return std::chrono::steady_clock::time_point{}; },
                   .say =
                       [&](const std::string&) {
                           EXPECT_EQ(++speaking, 1);
                           ++lines;
                           --speaking;
                       }}};
    outage.answered();
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i) {
                Outage::Request request{outage};
                EXPECT_TRUE(request.failed("fails", std::nullopt));
                request.succeeded();
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_GE(lines, 2);
    EXPECT_EQ(lines % 2, 0) << "each begin has its end";
}

}  // namespace
