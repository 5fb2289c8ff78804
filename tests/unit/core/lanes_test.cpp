// What is done to several numbers at once, against the same done to each, at every level of this machine.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/core/lanes.hpp>
#include <strata/core/simd.hpp>

namespace {

using strata::bf16;
using strata::core::Lanes;

constexpr int most = 16;

std::vector<float> some_numbers() {
    std::vector<float> numbers(most);
    for (int i = 0; i < most; ++i)
        numbers[static_cast<std::size_t>(i)] = static_cast<float>((i * 7) % most) * 0.75F - 5.1F;
    return numbers;
}

/// test(Lanes<n>{}) as compiled for every level that this machine has.
template <class Test>
void at_every_level(const Test& test) {
    for (int level = 0; level <= static_cast<int>(strata::core::simd_level()); ++level)
        strata::core::run_in_lanes(
            static_cast<strata::core::SimdLevel>(level), [&](auto lanes) __attribute__((always_inline)) {
                test(Lanes<decltype(lanes)::value>{});
            });
}

TEST(Lanes, AreComputedOneByOne) {
    const std::vector<float> x = some_numbers();
    at_every_level([&]<class L>(const L&) __attribute__((always_inline)) {
        float out[most];
        const L a = L::load(x.data());
        store(out, (a + 2.0F) * a);
        for (int i = 0; i < L::width; ++i)
            EXPECT_EQ(out[i], (x[static_cast<std::size_t>(i)] + 2.0F) * x[static_cast<std::size_t>(i)]);
        store(out, 1.0F / (3.0F - a));
        for (int i = 0; i < L::width; ++i) EXPECT_EQ(out[i], 1.0F / (3.0F - x[static_cast<std::size_t>(i)]));
        store(out, swap_pairs(a));
        for (int i = 0; i < L::width; ++i) EXPECT_EQ(out[i], x[static_cast<std::size_t>(i ^ 1)]);
        store(out, max(min(a, L{} + 1.0F), L{} - 1.0F));
        for (int i = 0; i < L::width; ++i) EXPECT_EQ(out[i], std::clamp(x[static_cast<std::size_t>(i)], -1.0F, 1.0F));
    });
}

TEST(Lanes, AreAddedInOneTreeAndComparedInAll) {
    const std::vector<float> x = some_numbers();
    at_every_level([&]<class L>(const L&) __attribute__((always_inline)) {
        float tree[most];
        std::copy_n(x.begin(), L::width, tree);
        for (int half = L::width / 2; half >= 1; half /= 2)
            for (int i = 0; i < half; ++i) tree[i] += tree[i + half];
        const L a = L::load(x.data());
        EXPECT_EQ(sum(a), tree[0]);
        EXPECT_EQ(largest(a), *std::max_element(x.begin(), x.begin() + L::width));
    });
}

TEST(Lanes, AreReadFromAndRoundedToBf16) {
    std::vector<float> x = some_numbers();
    x[1] = std::numeric_limits<float>::infinity();
    x[2] = 1.00390625F;  // half way between two
    x[3] = -0.0F;
    at_every_level([&]<class L>(const L&) __attribute__((always_inline)) {
        bf16 narrow[most];
        store(narrow, L::load(x.data()));
        float wide[most];
        store(wide, L::load(narrow));
        for (int i = 0; i < L::width; ++i) {
            EXPECT_EQ(narrow[i], strata::to_bf16(x[static_cast<std::size_t>(i)])) << i;
            EXPECT_EQ(wide[i], strata::to_float(narrow[i])) << i;
        }
        const float nan = std::numeric_limits<float>::quiet_NaN();
        store(narrow, L{} + nan);
        EXPECT_TRUE(std::isnan(strata::to_float(narrow[0])));
    });
}

TEST(Lanes, OfAPartLeaveWhatLiesBehindIt) {
    const std::vector<float> x = some_numbers();
    at_every_level([&]<class L>(const L&) __attribute__((always_inline)) {
        for (std::int64_t n = 1; n < L::width; ++n) {
            float whole[most];
            store(whole, L::load_some(x.data(), n, -9.0F));
            float part[most];
            std::fill_n(part, most, 77.0F);
            store_some(part, L::load(x.data()), n);
            float first[most];
            store(first, first_lanes(L::load(x.data()), n));
            for (std::int64_t i = 0; i < L::width; ++i) {
                EXPECT_EQ(whole[i], i < n ? x[static_cast<std::size_t>(i)] : -9.0F);
                EXPECT_EQ(part[i], i < n ? x[static_cast<std::size_t>(i)] : 77.0F);
                EXPECT_EQ(first[i], i < n ? x[static_cast<std::size_t>(i)] : 0.0F);
            }
        }
    });
}

TEST(Lanes, HaveTheirExponentials) {
    at_every_level([&]<class L>(const L&) __attribute__((always_inline)) {
        for (float x = -80.0F; x <= 80.0F; x += 0.37F) {
            float out[most];
            store(out, exp(L{} + x));
            const double exact = std::exp(static_cast<double>(x));
            EXPECT_NEAR(static_cast<double>(out[0]) / exact, 1.0, 3e-7 + 1e-7 * std::abs(static_cast<double>(x))) << x;
        }
    });
}

}  // namespace
