#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/for_all.hpp>

namespace {

using namespace std::chrono_literals;
using strata::datasets::for_all;

TEST(ForAll, APassDoesEveryItemOnceAndCountsUp) {
    std::atomic<std::int64_t> sum{0};
    std::int64_t last = 0;
    for_all(
        1000, 4, [&](std::int64_t i) { sum += i; }, [&](std::int64_t done) { EXPECT_EQ(done, ++last); });
    EXPECT_EQ(sum, 999 * 1000 / 2);
    EXPECT_EQ(last, 1000);
    for_all(
        0, 2, [](std::int64_t) { FAIL(); }, [](std::int64_t) { FAIL(); });
}

TEST(ForAll, APassEndsWithTheErrorOfAnItem) {
    std::atomic<int> begun{0};
    EXPECT_THROW(for_all(
                     100'000, 2,
                     [&](std::int64_t i) {
                         ++begun;
                         if (i == 10) throw std::runtime_error{"ten"};
                         std::this_thread::sleep_for(1ms);  // all of them would take a minute
                     },
                     [](std::int64_t) {}),
                 std::runtime_error);
    EXPECT_LT(begun, 100'000);
}

}  // namespace
