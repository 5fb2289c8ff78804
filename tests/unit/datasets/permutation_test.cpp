#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <strata/datasets/permutation.hpp>

namespace {

using namespace strata::core;
using namespace strata::datasets;

std::vector<std::int64_t> order_of(std::int64_t count, std::uint64_t key) {
    const Permutation permutation{count, key};
    std::vector<std::int64_t> order;
    for (std::int64_t place = 0; place < count; ++place) order.push_back(permutation.at(place));
    return order;
}

TEST(Permutation, HasEveryNumberOnce) {
    for (const std::int64_t count : {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 65, 100, 1000, 4096, 4097}) {
        const auto order = order_of(count, static_cast<std::uint64_t>(count));
        const std::set<std::int64_t> numbers(order.begin(), order.end());
        EXPECT_EQ(static_cast<std::int64_t>(numbers.size()), count);
        EXPECT_EQ(*numbers.begin(), 0);
        EXPECT_EQ(*numbers.rbegin(), count - 1);
    }
}

TEST(Permutation, IsInsideForHugeCounts) {
    for (const std::int64_t count : {(std::int64_t{1} << 40) + 1, std::int64_t{1} << 62}) {
        const Permutation permutation{count, 3};
        std::set<std::int64_t> seen;
        for (std::int64_t place = count - 1000; place < count; ++place) {
            EXPECT_GE(permutation.at(place), 0);
            EXPECT_LT(permutation.at(place), count);
            seen.insert(permutation.at(place));
        }
        EXPECT_EQ(seen.size(), 1000U);
    }
}

TEST(Permutation, IsTheSameOnEveryMachineForever) {
    EXPECT_EQ(order_of(8, 42), (std::vector<std::int64_t>{3, 1, 6, 2, 4, 0, 7, 5}));
    const Permutation large{1000000, 42};
    EXPECT_EQ((std::vector<std::int64_t>{large.at(0), large.at(1), large.at(999999)}),
              (std::vector<std::int64_t>{271127, 976982, 393188}));
}

TEST(Permutation, OrdersOfAFewAreEquallyLikely) {
    for (const auto& [count, orders] : {std::pair{3, 6}, std::pair{4, 24}, std::pair{5, 120}}) {
        std::map<std::vector<std::int64_t>, int> seen;
        for (int key = 0; key < orders * 400; ++key)
            ++seen[order_of(count, combine({1, static_cast<std::uint64_t>(key)}))];
        EXPECT_EQ(static_cast<int>(seen.size()), orders);
        for (const auto& [order, times] : seen) EXPECT_NEAR(times, 400, 5 * 20);  // five standard deviations
    }
}

TEST(Permutation, NeighboursAreAnywhereEquallyLikely) {
    for (const std::int64_t count : {17, 33, 100}) {
        std::map<std::int64_t, int> first;
        std::map<std::int64_t, int> distance;
        for (int key = 0; key < 400 * count; ++key) {
            const Permutation permutation{count, combine({2, static_cast<std::uint64_t>(key)})};
            ++first[permutation.at(0)];
            ++distance[(permutation.at(1) - permutation.at(0) + count) % count];
        }
        EXPECT_EQ(static_cast<std::int64_t>(first.size()), count);
        EXPECT_EQ(static_cast<std::int64_t>(distance.size()), count - 1);
        for (const auto& [number, times] : first) EXPECT_NEAR(times, 400, 5 * 20) << count;
        for (const auto& [number, times] : distance) EXPECT_NEAR(times, 404, 5 * 21 + 25) << count;
    }
}

}  // namespace
