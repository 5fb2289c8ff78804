#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <strata/data/pipeline.hpp>

namespace {

using namespace std::chrono_literals;
using strata::data::for_all;
using strata::data::OrderedStream;
using Clock = std::chrono::steady_clock;

TEST(Pipeline, ItemsComeInOrderWhateverTheyTake) {
    OrderedStream<std::int64_t> stream{[](std::int64_t i, const std::atomic<bool>&) {
                                           std::this_thread::sleep_for(std::chrono::microseconds{(i * 7919) % 500});
                                           return i * i;
                                       },
                                       5, 8, 4};
    for (std::int64_t i = 5; i < 300; ++i) ASSERT_EQ(stream.next(), i * i);
}

TEST(Pipeline, NeverMakesMoreThanItWasAllowed) {
    std::atomic<int> made{0};
    OrderedStream<int> stream{[&](std::int64_t, const std::atomic<bool>&) { return ++made; }, 0, 6, 4};
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(made, 6);
    for (int i = 0; i < 10; ++i) (void)stream.next();
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(made, 16);
}

TEST(Pipeline, WorksWithOneThread) {
    OrderedStream<std::int64_t> stream{[](std::int64_t i, const std::atomic<bool>&) { return i; }, 0, 1, 1};
    for (std::int64_t i = 0; i < 50; ++i) ASSERT_EQ(stream.next(), i);
}

TEST(Pipeline, AnErrorArrivesInPlaceOfItsItemAndTheRestGoesOn) {
    OrderedStream<std::int64_t> stream{[](std::int64_t i, const std::atomic<bool>&) {
                                           if (i == 3) throw std::runtime_error{"item 3 of a.png"};
                                           return i;
                                       },
                                       0, 4, 2};
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(stream.next(), i);
    try {
        (void)stream.next();
        FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "item 3 of a.png");
    }
    EXPECT_EQ(stream.next(), 4);
}

TEST(Pipeline, EndsPromptlyAtAnyMoment) {
    for (int taken = 0; taken < 12; ++taken) {
        std::atomic<int> running{0};
        const auto begin = Clock::now();
        {
            OrderedStream<std::int64_t> stream{[&](std::int64_t i, const std::atomic<bool>& stop) {
                                                   ++running;
                                                   for (int k = 0; k < 200 && !stop; ++k) std::this_thread::sleep_for(1ms);
                                                   --running;
                                                   return i;
                                               },
                                               0, 50, 4};
            if (taken % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{taken * 5});
        }
        EXPECT_LT(Clock::now() - begin, 500ms);
        EXPECT_EQ(running, 0);
    }
}

TEST(Pipeline, APassDoesEveryItemOnceAndCountsUp) {
    std::atomic<std::int64_t> sum{0};
    std::int64_t last = 0;
    for_all(1000, 4, [&](std::int64_t i) { sum += i; }, [&](std::int64_t done) { EXPECT_EQ(done, ++last); });
    EXPECT_EQ(sum, 999 * 1000 / 2);
    EXPECT_EQ(last, 1000);
    for_all(0, 2, [](std::int64_t) { FAIL(); }, [](std::int64_t) { FAIL(); });
}

TEST(Pipeline, APassEndsWithTheErrorOfAnItem) {
    std::atomic<int> begun{0};
    EXPECT_THROW(for_all(100'000, 2,
                         [&](std::int64_t i) {
                             ++begun;
                             if (i == 10) throw std::runtime_error{"ten"};
                         },
                         [](std::int64_t) {}),
                 std::runtime_error);
    EXPECT_LT(begun, 100'000);
}

}  // namespace
