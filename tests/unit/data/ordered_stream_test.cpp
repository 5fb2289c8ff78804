#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/data/ordered_stream.hpp>

namespace {

using namespace std::chrono_literals;
using strata::data::OrderedStream;

/// Waits for what must come; the deadline only keeps a failure from hanging.
template <class Condition>
bool comes_true(const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

TEST(OrderedStream, ItemsComeInOrderWhateverTheyTake) {
    std::vector<std::atomic<bool>> made(400);
    OrderedStream<std::int64_t> stream{[&](std::int64_t i, const std::atomic<bool>& stop) {
                                           // Two of the eight items under way are ready only after their successors.
                                           const auto item = static_cast<std::size_t>(i);
                                           if (i % 4 == 0) {
                                               EXPECT_TRUE(comes_true([&] { return made[item + 1] || stop; }));
                                           }
                                           made[item] = true;
                                           return i * i;
                                       },
                                       4, 8, 4};
    for (std::int64_t i = 4; i < 300; ++i) ASSERT_EQ(stream.next(), i * i);
}

TEST(OrderedStream, NeverMakesMoreThanItWasAllowed) {
    std::atomic<std::int64_t> made{0};
    std::atomic<std::int64_t> taken{0};
    std::atomic<int> too_early{0};
    {
        OrderedStream<std::int64_t> stream{[&](std::int64_t i, const std::atomic<bool>&) {
                                               if (i >= taken + 6) ++too_early;
                                               return ++made;
                                           },
                                           0, 6, 4};
        EXPECT_TRUE(comes_true([&] { return made == 6; }));
        for (int i = 0; i < 10; ++i) {
            ++taken;
            (void)stream.next();
        }
        EXPECT_TRUE(comes_true([&] { return made == 16; }));
    }  // what else was asked for is made by now
    EXPECT_EQ(too_early, 0);
    EXPECT_EQ(made, 16);
}

TEST(OrderedStream, WorksWithOneThread) {
    OrderedStream<std::int64_t> stream{[](std::int64_t i, const std::atomic<bool>&) { return i; }, 0, 1, 1};
    for (std::int64_t i = 0; i < 50; ++i) ASSERT_EQ(stream.next(), i);
}

TEST(OrderedStream, AnErrorArrivesInPlaceOfItsItemAndTheRestGoesOn) {
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

TEST(OrderedStream, EndingStopsWhatIsBeingMadeAndDropsTheRest) {
    for (int moment = 0; moment <= 4; ++moment) {
        std::atomic<int> begun{0};
        std::atomic<int> running{0};
        std::atomic<int> never_told{0};
        {
            OrderedStream<std::int64_t> stream{[&](std::int64_t i, const std::atomic<bool>& stop) {
                                                   ++begun;
                                                   ++running;
                                                   if (!comes_true([&] { return stop.load(); })) ++never_told;
                                                   --running;
                                                   return i;
                                               },
                                               0, 50, 4};
            EXPECT_TRUE(comes_true([&] { return running >= moment; }));
        }
        EXPECT_EQ(never_told, 0);
        EXPECT_EQ(running, 0);
        EXPECT_LT(begun, 50);
    }
}

}  // namespace
