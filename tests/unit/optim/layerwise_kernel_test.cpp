// Lamb in two passes: against its paper, against double arithmetic, and cut into slices as ranks cut it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/lamb.hpp>
#include <strata/optim/layerwise_kernel.hpp>

#include "golden.hpp"

namespace {

using strata::bf16;
using strata::Lamb;
using strata::to_bf16;
using strata::core::simd_level;
using strata::core::SimdLevel;
using strata::optim::advance;
using strata::optim::apply_direction;
using strata::optim::NormSquares;
using strata::optim::Segment;
using strata::optim::StochasticRounding;
using strata::optim::trust_ratios;
using strata::optim::testing::expect_near;
using strata::optim::testing::Golden;
using strata::optim::testing::narrow;
using strata::optim::testing::normal_values;
using strata::optim::testing::rounded;

/// Two parameters with padding behind them: elements 0 .. a - 1 and a .. a + b - 1 of a + b + 3.
struct Model {
    std::size_t a, b;
    std::vector<float> weight;
    std::array<std::vector<float>, 2> state;
    std::vector<bf16> copy;

    Model(std::size_t a_, std::size_t b_) : a{a_}, b{b_}, weight{normal_values(a_, 1)}, copy(a_ + b_ + 3) {
        for (const float value : normal_values(b, 2)) weight.push_back(10.0F * value);
        weight.resize(a + b + 3);
        for (auto& values : state) values.resize(weight.size());
    }
    [[nodiscard]] std::vector<float> gradient(int t) const {
        auto values = normal_values(a + b, 10U + static_cast<unsigned>(t));
        values.resize(weight.size());
        return values;
    }
    /// The parts of both parameters that lie in begin .. end - 1.
    [[nodiscard]] std::vector<Segment> segments(std::size_t begin, std::size_t end) const {
        std::vector<Segment> found;
        for (const auto& [from, to, parameter] : {std::tuple{std::size_t{0}, a, 0UL}, std::tuple{a, a + b, 1UL}}) {
            const std::size_t first = std::max(from, begin);
            const std::size_t last = std::min(to, end);
            if (first >= last) continue;
            found.push_back(
                {static_cast<std::int64_t>(first - begin), static_cast<std::int64_t>(last - first), parameter});
        }
        return found;
    }
    /// One step of `ranks` ranks that own equal slices.
    void step(const Lamb::Options& options, double lr, int t, std::size_t ranks, SimdLevel level = simd_level()) {
        const auto scalars = Lamb::scalars(options, lr, t);
        const auto all = gradient(t);
        const std::size_t share = (weight.size() + ranks - 1) / ranks;
        const auto slice = [&](auto& values, std::size_t rank) {
            const std::size_t begin = std::min(rank * share, values.size());
            return std::span{values}.subspan(begin, std::min(share, values.size() - begin));
        };
        std::vector<NormSquares> norms(2);
        for (std::size_t r = 0; r < ranks; ++r) {
            std::vector<NormSquares> mine(2);
            advance<Lamb, float, float>(scalars, 0.5F, slice(all, r), slice(weight, r),
                                        {slice(state[0], r), slice(state[1], r)}, segments(r * share, (r + 1) * share),
                                        mine, {}, level);
            for (std::size_t p = 0; p < 2; ++p) norms[p] += mine[p];
        }
        const auto ratios = trust_ratios<Lamb>(options, norms);
        for (std::size_t r = 0; r < ranks; ++r) {
            apply_direction<Lamb>(scalars, slice(weight, r), {slice(state[0], r), slice(state[1], r)},
                                  segments(r * share, (r + 1) * share), ratios, slice(copy, r), level);
        }
    }
    bool operator==(const Model&) const = default;
};

TEST(LayerwiseKernel, LambIsItsFormulaAndPaddingAndCopyAreRight) {
    const Lamb::Options o{.weight_decay = 0.1};
    for (std::size_t n = 1; n <= 40; ++n) {
        Model model{n, 2 * n + 1};
        std::vector<double> w(model.weight.begin(), model.weight.end());
        std::vector<std::array<double, 2>> s(w.size());
        for (int t = 1; t <= 3; ++t) {
            model.step(o, 0.01, t, 1);
            const auto g = model.gradient(t);
            for (const auto& [begin, end] : {std::pair{std::size_t{0}, n}, std::pair{n, 3 * n + 1}}) {
                std::vector<double> u(w.size());
                double ww = 0, uu = 0;
                for (std::size_t i = begin; i < end; ++i) {
                    const double half = 0.5 * static_cast<double>(g[i]);
                    s[i][0] = o.beta1 * s[i][0] + (1 - o.beta1) * half;
                    s[i][1] = o.beta2 * s[i][1] + (1 - o.beta2) * half * half;
                    u[i] = s[i][0] / (1 - std::pow(o.beta1, t)) /
                               (std::sqrt(s[i][1] / (1 - std::pow(o.beta2, t))) + o.epsilon) +
                           o.weight_decay * w[i];
                    ww += w[i] * w[i];
                    uu += u[i] * u[i];
                }
                for (std::size_t i = begin; i < end; ++i) w[i] -= 0.01 * std::sqrt(ww) / std::sqrt(uu) * u[i];
            }
            for (std::size_t i = 0; i < w.size(); ++i) {
                EXPECT_NEAR(model.weight[i], w[i], 5e-6) << n << ' ' << i;
                EXPECT_EQ(model.copy[i], i < 3 * n + 1 ? to_bf16(model.weight[i]) : bf16{});
            }
            for (std::size_t i = 3 * n + 1; i < w.size(); ++i) EXPECT_EQ(model.weight[i], 0.0F);
        }
    }
}

TEST(LayerwiseKernel, EveryInstructionSetGivesTheSameBits) {
    for (const std::size_t n : {1UL, 17UL, 33UL, 70'001UL}) {
        Model first{n, 3};
        for (int t = 1; t <= 3; ++t) first.step({}, 0.01, t, 1, SimdLevel::baseline);
        for (int level = 1; level <= static_cast<int>(simd_level()); ++level) {
            Model other{n, 3};
            for (int t = 1; t <= 3; ++t) other.step({}, 0.01, t, 1, static_cast<SimdLevel>(level));
            EXPECT_EQ(first, other) << n << " elements, level " << level;
        }
    }
}

// Only the last bits of norms, formed in double and rounded to fp32 once, may depend on the cuts.
TEST(LayerwiseKernel, RanksThatOwnSlicesReachTheSameWeights) {
    Model alone{1000, 77};
    for (int t = 1; t <= 5; ++t) alone.step({}, 0.01, t, 1);
    for (const std::size_t ranks : {2UL, 3UL, 7UL}) {
        Model many{1000, 77};
        for (int t = 1; t <= 5; ++t) many.step({}, 0.01, t, ranks);
        expect_near(many.weight, {alone.weight.begin(), alone.weight.end()}, 2e-6, std::to_string(ranks) + " ranks");
    }
}

TEST(LayerwiseKernel, RatioIsOneWithoutANormAndClippedWhereAsked) {
    EXPECT_EQ(Lamb::trust_ratio({}, 0.0, 2.0), 1.0);
    EXPECT_EQ(Lamb::trust_ratio({}, 2.0, 0.0), 1.0);
    EXPECT_EQ(Lamb::trust_ratio({}, 6.0, 2.0), 3.0);
    EXPECT_EQ(Lamb::trust_ratio({.max_weight_norm = 2.0}, 6.0, 2.0), 1.0);
    EXPECT_EQ(Lamb::trust_ratio({.min_weight_norm = 8.0}, 6.0, 2.0), 4.0);
}

// Slices begin where chunks of 65536 do not; random bits follow the element all the same.
TEST(LayerwiseKernel, PureBf16DependsOnSeedStepAndElementOnly) {
    constexpr std::size_t n = 140'003;
    const auto start = rounded(normal_values(n, 1));
    const auto gradient = rounded(normal_values(n, 2));
    const auto scalars = Lamb::scalars({}, 0.01, 1);
    const auto run = [&](std::size_t slice, SimdLevel level) {
        std::vector<bf16> weight = start;
        std::array<std::vector<bf16>, 2> state{std::vector<bf16>(n), std::vector<bf16>(n)};
        std::vector<NormSquares> norms(1);
        const std::vector<float> fixed{0.7F};
        for (const bool second : {false, true}) {
            for (std::size_t at = 0; at < n; at += slice) {
                const std::size_t count = std::min(slice, n - at);
                const StochasticRounding rounding{
                    .seed = 3, .step = 1, .first_element = static_cast<std::int64_t>(500 + at)};
                const std::vector<Segment> segment{{0, static_cast<std::int64_t>(count), 0}};
                const std::array<std::span<bf16>, 2> states{std::span{state[0]}.subspan(at, count),
                                                            std::span{state[1]}.subspan(at, count)};
                if (second) {
                    apply_direction<Lamb>(scalars, std::span{weight}.subspan(at, count), states, segment, fixed,
                                          rounding, level);
                } else {
                    advance<Lamb, bf16, bf16>(scalars, {}, std::span{gradient}.subspan(at, count),
                                              std::span<const bf16>{weight}.subspan(at, count), states, segment, norms,
                                              rounding, level);
                }
            }
        }
        return std::tuple{weight, state, std::sqrt(norms[0].direction)};
    };
    const auto [weight, state, norm] = run(n, SimdLevel::baseline);
    EXPECT_FALSE(weight == start);
    for (const std::size_t slice : {n, std::size_t{30'000}}) {
        const auto [other_weight, other_state, other_norm] = run(slice, simd_level());
        EXPECT_TRUE(weight == other_weight) << slice;
        EXPECT_TRUE(state == other_state) << slice;
        EXPECT_NEAR(norm, other_norm, 1e-12 * norm);
    }
}

void expect_golden(const Golden& golden, const std::string& variant, const Lamb::Options& options) {
    for (int p = 0; p < 4; ++p) {
        const std::string parameter = ".p" + std::to_string(p);
        auto weight = narrow(golden.read("in.init" + parameter));
        std::array<std::vector<float>, 2> state{std::vector<float>(weight.size()), std::vector<float>(weight.size())};
        const std::vector<Segment> segments{{0, static_cast<std::int64_t>(weight.size()), 0}};
        for (int t = 1; t <= 10; ++t) {
            const std::string step = ".s" + std::to_string(t);
            const auto scalars = Lamb::scalars(options, 0.01, t);
            const auto gradient = narrow(golden.read("in.grad" + step + parameter));
            std::vector<NormSquares> norms(1);
            advance<Lamb, float, float>(scalars, {}, gradient, weight, {state[0], state[1]}, segments, norms);
            apply_direction<Lamb>(scalars, weight, {state[0], state[1]}, segments, trust_ratios<Lamb>(options, norms));
            expect_near(weight, golden.read("out." + variant + step + parameter), 2e-6, variant + step + parameter);
        }
        expect_near(state[0], golden.read("state." + variant + ".s10.m" + parameter), 1e-6, variant + " m");
        expect_near(state[1], golden.read("state." + variant + ".s10.v" + parameter), 1e-6, variant + " v");
    }
}

TEST(LayerwiseKernel, LambMatchesItsPaper) {
    const Golden golden{"optim_paper"};
    if (!golden.exists()) GTEST_SKIP() << golden.path() << " is not there";
    expect_golden(golden, "lamb", {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-6, .weight_decay = 0.01});
    expect_golden(golden, "lamb_nobc",
                  {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.0, .bias_correction = false});
    expect_golden(golden, "lamb_clip",
                  {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1, .max_weight_norm = 2.0});
}

}  // namespace
