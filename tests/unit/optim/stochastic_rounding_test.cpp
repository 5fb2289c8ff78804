// Stochastic rounding: what it keeps, what it is on average, and how random its bits are.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_kernel.hpp>

namespace {

using strata::bf16;
using strata::to_bf16;
using strata::to_float;
using strata::optim::StochasticRounding;
using strata::optim::to_bf16_stochastic;

/// Makes the kernel write a constant everywhere: what is left to see is the rounding.
struct Fill {
    struct Options {};
    struct Scalars {
        float value;
    };
    static constexpr std::array<std::string_view, 3> state_names{"a", "b", "c"};
    static Scalars scalars(const Options&, double value, std::int64_t) { return {static_cast<float>(value)}; }
    [[gnu::always_inline]] static void apply(float& weight, float, float* state, const Scalars& s) {
        weight = state[0] = state[1] = state[2] = s.value;
    }
};

/// Whether each element was rounded up: of the weight, then of the three states. `value` lies above 1, below the next
/// bf16.
std::array<std::vector<int>, 4> ups(double value, const StochasticRounding& rounding, std::size_t n) {
    std::array<std::vector<bf16>, 4> out;
    for (auto& values : out) values.resize(n);
    const std::vector<bf16> gradient(n);
    strata::optim::update<Fill, bf16>(Fill::scalars({}, value, 1), {}, std::span<const bf16>{gradient}, out[0],
                                      {out[1], out[2], out[3]}, rounding);
    std::array<std::vector<int>, 4> result;
    for (std::size_t slot = 0; slot < 4; ++slot) {
        for (const bf16 rounded : out[slot]) {
            EXPECT_TRUE(rounded == bf16{0x3f80} || rounded == bf16{0x3f81});
            result[slot].push_back(rounded == bf16{0x3f81});
        }
    }
    return result;
}

double mean(const std::vector<int>& values) {
    double sum = 0;
    for (const int value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

/// Share of positions at which both agree; 1/2 for independent fair bits.
double agreement(const std::vector<int>& a, const std::vector<int>& b, std::size_t shift = 0) {
    double same = 0;
    for (std::size_t i = 0; i + shift < a.size(); ++i) same += a[i] == b[i + shift];
    return same / static_cast<double>(a.size() - shift);
}

TEST(StochasticRounding, KeepsWhatBf16HasAndNan) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
        const bf16 value{static_cast<std::uint16_t>(bits)};
        if (std::isnan(to_float(value))) {
            ASSERT_EQ(to_bf16_stochastic(to_float(value), 0xffff), bf16{0x7fc0});
        } else {
            ASSERT_EQ(to_bf16_stochastic(to_float(value), 0xffff), value);
        }
    }
    EXPECT_EQ(to_bf16_stochastic(std::bit_cast<float>(0x7f800001U), 0), bf16{0x7fc0}) << "payload in the lower half";
}

TEST(StochasticRounding, EveryRemainderGoesUpAsOftenAsItSays) {
    for (const std::uint32_t remainder : {0U, 1U, 0x4000U, 0x8000U, 0xffffU}) {
        const float value = std::bit_cast<float>(0xbf800000U + remainder);
        std::uint32_t up = 0;
        for (std::uint32_t random = 0; random <= 0xffff; ++random) {
            up += to_bf16_stochastic(value, random) == bf16{0xbf81} ? 1U : 0U;
        }
        EXPECT_EQ(up, remainder);
    }
}

TEST(StochasticRounding, IsRightOnAverageInEverySlot) {
    constexpr std::size_t n = 1 << 18;
    for (const double share : {0.03125, 0.25, 0.5, 0.75}) {
        const double tolerance = 4.5 * std::sqrt(share * (1 - share) / static_cast<double>(n));
        for (const auto& slot : ups(1.0 + share / 128, {.seed = 42, .step = 5}, n))
            EXPECT_NEAR(mean(slot), share, tolerance);
    }
}

TEST(StochasticRounding, NeighboursSlotsStepsAndSeedsAreIndependent) {
    constexpr std::size_t n = 1 << 18;
    constexpr double half = 1.0 + 0.5 / 128;
    const double tolerance = 4.5 * 0.5 / std::sqrt(static_cast<double>(n));
    const auto base = ups(half, {.seed = 1, .step = 1}, n);
    for (std::size_t a = 0; a < 4; ++a) {
        for (const std::size_t shift : {1UL, 2UL, 16UL, 65536UL}) {
            EXPECT_NEAR(agreement(base[a], base[a], shift), 0.5, 1.2 * tolerance) << "slot " << a << " shift " << shift;
        }
        for (std::size_t b = a + 1; b < 4; ++b)
            EXPECT_NEAR(agreement(base[a], base[b]), 0.5, tolerance) << a << ' ' << b;
    }
    for (const StochasticRounding& other :
         {StochasticRounding{.seed = 1, .step = 2}, StochasticRounding{.seed = 2, .step = 1},
          StochasticRounding{.seed = 1, .step = 1, .first_element = 1 << 18}}) {
        const auto others = ups(half, other, n);
        for (std::size_t slot = 0; slot < 4; ++slot) EXPECT_NEAR(agreement(base[slot], others[slot]), 0.5, tolerance);
    }
    EXPECT_EQ(base, ups(half, {.seed = 1, .step = 1}, n)) << "and reproducible";
}

// Written down once, so that a change of the generator, which would change every run, is noticed.
TEST(StochasticRounding, BitsAreThoseOfTheFirstRelease) {
    const auto all = ups(1.0 + 0.5 / 128, {.seed = 2024, .step = 3, .first_element = 123'456'789'012}, 32);
    std::uint32_t word = 0;
    for (const int up : all[0]) {
        word = word * 2 + static_cast<std::uint32_t>(up);
    }
    EXPECT_EQ(word, 0xe736b6c1U);
}

}  // namespace
