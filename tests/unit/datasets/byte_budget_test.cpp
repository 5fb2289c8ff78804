#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/byte_budget.hpp>

namespace {

using strata::datasets::ByteBudget;

TEST(ByteBudget, IsNeverExceededAndEverybodyIsServed) {
    ByteBudget budget{100};
    std::atomic<std::int64_t> held{0};
    std::atomic<std::int64_t> most{0};
    std::atomic<int> served{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) {
                const std::int64_t bytes = (t * 31 + i * 17) % 100 + 1;
                const auto part = budget.take(bytes);
                const std::int64_t now = held += bytes;
                for (std::int64_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
                }
                held -= bytes;
                ++served;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(served, 8 * 500);
    EXPECT_LE(most, 100);
}

TEST(ByteBudget, AWishForMoreThanThereIsIsServedAlone) {
    ByteBudget budget{10};
    std::atomic<bool> large_is_done{false};
    std::atomic<bool> small_came_first{false};
    std::thread small;
    {
        const auto everything = budget.take(1'000'000);
        small = std::thread{[&] {
            const auto part = budget.take(1);
            small_came_first = !large_is_done;
        }};
        for (int i = 0; i < 100; ++i) std::this_thread::yield();
        large_is_done = true;
    }
    small.join();
    EXPECT_FALSE(small_came_first);
}

TEST(ByteBudget, NothingAndLessThanNothingNeverWait) {
    ByteBudget budget{5};
    const auto everything = budget.take(5);
    const auto nothing = budget.take(0);
    const auto less = budget.take(-3);
}

TEST(ByteBudget, WhoHoldsAFileMayWaitForItsPixels) {
    strata::datasets::DecodeMemory memory{100};
    std::atomic<int> decoded{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) {
                const auto file = memory.files.take(i % 2 == 0 ? 25 : 1000);  // all that files may have
                const auto pixels = memory.pixels.take(60);                   // one at a time
                ++decoded;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(decoded, 1600);
}

}  // namespace
