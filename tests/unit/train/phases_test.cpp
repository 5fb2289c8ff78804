// What a person sees before training: phases that take long, with their rate and the time that is left.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/train/phases.hpp>

namespace {

using namespace std::chrono_literals;
using strata::train::Phases;

/// What is written while a clock goes that the test moves.
struct Screen {
    Phases::Clock::time_point now{};
    std::string text;
    Phases phases;

    explicit Screen(bool live, bool shown = true)
        : phases{
              shown, live, {.write = [this](std::string_view some) { text += some; }, .now = [this] { return now; }}} {}
    std::string taken() { return std::exchange(text, {}); }
    /// So many are done, one every so often, from where it is.
    void pass(std::string_view what, std::int64_t from, std::int64_t to, std::int64_t total,
              Phases::Clock::duration each) {
        for (std::int64_t done = from; done <= to; ++done) {
            phases(what, done, total);
            if (done < to) now += each;
        }
    }
};

TEST(Phases, WhatTakesLessThanTwoSecondsIsNotShown) {
    for (const bool live : {false, true}) {
        Screen screen{live};
        screen.pass("latents", 1, 1000, 1000, 1999us);
        screen.pass("captions", 1, 20, 0, 99ms);
        screen.phases.end();
        EXPECT_EQ(screen.taken(), "");
    }
}

TEST(Phases, InAFileOneLineAtItsBeginOneEveryThirtySecondsAndOneAtItsEnd) {
    Screen screen{false};
    screen.pass("latents", 1, 7001, 7001, 10ms);
    EXPECT_EQ(screen.taken(),
              "latents: 201 of 7,001 (2 %), 100 a second, ETA 1:08\n"
              "latents: 3,201 of 7,001 (45 %), 100 a second, ETA 0:38\n"
              "latents: 6,201 of 7,001 (88 %), 100 a second, ETA 0:08\n"
              "latents: 7,001 in 1:10, 100 a second\n");
    screen.phases.end();
    EXPECT_EQ(screen.taken(), "") << "it has ended";
}

TEST(Phases, OnATerminalOneLineIsDrawnAgainTenTimesASecondAtMost) {
    Screen screen{true};
    screen.pass("latents", 1, 200, 1000, 10ms);
    EXPECT_EQ(screen.taken(), "");
    screen.pass("latents", 201, 211, 1000, 10ms);  // begins in the moment of the last one
    const std::string drawn = screen.taken();
    EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '\r'), 1) << drawn;
    EXPECT_EQ(drawn.find("\n"), std::string::npos);
    screen.now += 100ms;
    screen.phases("latents", 221, 1000);
    EXPECT_TRUE(screen.text.starts_with("\r\x1b[Klatents: 221 of 1,000 (22 %), ")) << screen.text;
    screen.text.clear();
    screen.now += 100ms;
    screen.phases("latents", 1000, 1000);
    EXPECT_NE(screen.text.find("\r\x1b[Klatents: 1,000 in 0:02, "), std::string::npos) << screen.text;
    EXPECT_TRUE(screen.text.ends_with("a second\n"));
}

TEST(Phases, AnotherPhaseEndsTheOneBefore) {
    Screen screen{false};
    screen.pass("pictures listed", 1, 31, 0, 100ms);
    screen.pass("pictures examined", 1, 1, 100, 1s);
    EXPECT_EQ(screen.taken(), "pictures listed: 21, 10.0 a second\npictures listed: 31 in 0:03, 10.0 a second\n");
    screen.now += 3s;
    screen.phases("pictures examined", 4, 100);
    EXPECT_EQ(screen.taken(), "pictures examined: 4 of 100 (4 %), 1.0 a second, ETA 1:36\n");
    screen.phases("pictures examined", 1, 50);  // of the next data set
    EXPECT_EQ(screen.taken(), "pictures examined: 4 of 100 (4 %) in 0:03, 1.0 a second\n");
}

TEST(Phases, WhatWasDoneBeforeDoesNotCountForItsRate) {
    Screen screen{false};
    screen.phases("latents", 90'000, 100'000);
    screen.now += 10s;
    screen.phases("latents", 90'100, 100'000);
    EXPECT_EQ(screen.taken(), "latents: 90,100 of 100,000 (90 %), 10.0 a second, ETA 16:30\n");
}

TEST(Phases, ItsEndIsSaidWhenNothingFollows) {
    std::string text;
    {
        Screen screen{false};
        screen.pass("pictures listed", 1, 31, 0, 100ms);
        screen.phases.end();
        text = screen.text;
    }
    EXPECT_TRUE(text.ends_with("pictures listed: 31 in 0:03, 10.0 a second\n")) << text;
}

TEST(Phases, LinesBesidesTakeTheOpenLineAway) {
    Screen screen{true};
    screen.pass("latents", 1, 31, 100, 100ms);
    (void)screen.taken();
    screen.phases.note("S3 server\x1b http://s does not answer");
    EXPECT_EQ(screen.taken(), "\r\x1b[KS3 server\\x1b http://s does not answer\n");
    screen.phases.note("again");
    EXPECT_EQ(screen.taken(), "again\n");
}

TEST(Phases, RanksThatShowNothingStillSayWhatTheyAreToldTo) {
    Screen screen{false, false};
    screen.pass("latents", 1, 100, 100, 1s);
    screen.phases.end();
    EXPECT_EQ(screen.taken(), "");
    screen.phases.note("rank 8: S3 server http://s does not answer");
    EXPECT_EQ(screen.taken(), "rank 8: S3 server http://s does not answer\n");
}

TEST(Phases, SomebodyElseHearsOfABeginThenEveryTwoSecondsAndWhenAllIsDone) {
    Phases::Clock::time_point now{};
    std::vector<std::string> heard;
    Phases phases{true,
                  false,
                  {.write = [](std::string_view) {},
                   .now = [&] { return now; },
                   .tell =
                       [&](const strata::train::PhaseNews& news) {
                           heard.push_back(std::string{news.what} + " " + std::to_string(news.done) + "/" +
                                           std::to_string(news.total));
                           if (news.seconds_left)
                               heard.back() += " " + std::to_string(static_cast<int>(*news.seconds_left));
                       }}};
    for (std::int64_t done = 0; done <= 50; ++done, now += 100ms) phases("latents", done, 50);
    phases("captions", 1, 0);
    now += 1999ms;
    phases("captions", 2, 0);
    phases.end();
    EXPECT_EQ(heard, (std::vector<std::string>{"latents 0/50", "latents 20/50 3", "latents 40/50 1", "latents 50/50",
                                               "captions 1/0"}));
}

TEST(Phases, ThreadsMayTellOfTheSamePhase) {
    Screen screen{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 1000; ++i) screen.phases("latents", 5, 10);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(screen.taken(), "") << "no time has passed";
}

}  // namespace
