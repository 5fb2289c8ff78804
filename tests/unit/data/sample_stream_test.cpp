#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/data/sample_stream.hpp>

namespace {

using namespace std::chrono_literals;
using strata::data::StepBounds;

struct Number {
    std::int64_t value = 0;
};
using Stream = strata::data::SampleStream<Number>;
using Group = Stream::Group;

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

/// A batch of one number, its own.
std::shared_ptr<Group> plan(std::int64_t number) {
    auto group = std::make_shared<Group>();
    group->samples.push_back({number});
    return group;
}
std::int64_t value_of(const std::shared_ptr<Group>& group) { return group->samples.at(0).value; }

Stream stream_of(std::function<bool(Number&)> fetch, std::int64_t first, std::int64_t ahead, int threads) {
    Stream::Graph::Steps steps;
    steps.fetch = std::move(fetch);
    return Stream{std::move(steps), plan, first, ahead, StepBounds::of(threads, threads, 1), threads};
}

TEST(SampleStream, BatchesComeInOrderWhateverTheyTake) {
    std::vector<std::atomic<bool>> made(400);
    auto stream = stream_of(
        [&](Number& number) {
            // Two of the eight batches under way are ready only after their successors.
            const auto item = static_cast<std::size_t>(number.value);
            if (item % 4 == 0 && item < 300) {
                EXPECT_TRUE(comes_true([&] { return made[item + 1].load(); }));
            }
            made[item] = true;
            number.value *= number.value;
            return false;
        },
        4, 8, 4);
    for (std::int64_t i = 4; i < 300; ++i) ASSERT_EQ(value_of(stream.next()), i * i);
}

TEST(SampleStream, NeverMakesMoreThanItWasAllowed) {
    std::atomic<std::int64_t> made{0};
    std::atomic<std::int64_t> taken{0};
    std::atomic<int> too_early{0};
    {
        auto stream = stream_of(
            [&](Number& number) {
                if (number.value >= taken + 6) ++too_early;
                ++made;
                return false;
            },
            0, 6, 4);
        EXPECT_TRUE(comes_true([&] { return made == 6; }));
        for (int i = 0; i < 10; ++i) {
            ++taken;
            (void)stream.next();
        }
        EXPECT_TRUE(comes_true([&] { return made == 16; }));
    }
    EXPECT_EQ(too_early, 0);
    EXPECT_EQ(made, 16);
}

TEST(SampleStream, WorksWithOneThread) {
    auto stream = stream_of([](Number&) { return true; }, 0, 1, 1);
    for (std::int64_t i = 0; i < 50; ++i) ASSERT_EQ(value_of(stream.next()), i);
}

TEST(SampleStream, AnErrorArrivesInPlaceOfItsBatchAndTheRestGoesOn) {
    Stream::Graph::Steps steps;
    steps.fetch = [](Number& number) -> bool {
        if (number.value == 3) throw std::runtime_error{"item 3 of a.png"};
        return false;
    };
    const auto planned = [](std::int64_t number) {
        if (number == 4) throw std::runtime_error{"no data set takes part"};
        return plan(number);
    };
    Stream stream{steps, planned, 0, 4, StepBounds::of(2, 2, 1), 2};
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(value_of(stream.next()), i);
    for (const std::string what : {"item 3 of a.png", "no data set takes part"}) {
        try {
            (void)stream.next();
            FAIL() << "nothing was thrown";
        } catch (const std::runtime_error& error) {
            EXPECT_EQ(error.what(), what);
        }
    }
    EXPECT_EQ(value_of(stream.next()), 5);
}

}  // namespace
