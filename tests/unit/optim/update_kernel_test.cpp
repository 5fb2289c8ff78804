// Update rules element by element: against double arithmetic, the reference implementations, and each other's levels.

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/core/fp16.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/adagrad.hpp>
#include <strata/optim/adam.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/sgd.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_kernel.hpp>

#include "golden.hpp"

namespace {

using strata::Adagrad;
using strata::Adam;
using strata::AdamW;
using strata::bf16;
using strata::fp16;
using strata::Lion;
using strata::Sgd;
using strata::to_bf16;
using strata::to_float;
using strata::to_fp16;
using strata::core::simd_level;
using strata::core::SimdLevel;
using strata::optim::GradientTransform;
using strata::optim::initial_state;
using strata::optim::state_count_v;
using strata::optim::StochasticRounding;
using strata::optim::testing::Descent;
using strata::optim::testing::expect_near;
using strata::optim::testing::Golden;
using strata::optim::testing::narrow;
using strata::optim::testing::normal_values;
using strata::optim::testing::rounded;

/// The rules once more, in double and in the words of the papers.
void reference(const AdamW::Options& o, double lr, int t, double& w, double g, std::array<double, 2>& s) {
    w *= 1 - lr * o.weight_decay;
    s[0] = o.beta1 * s[0] + (1 - o.beta1) * g;
    s[1] = o.beta2 * s[1] + (1 - o.beta2) * g * g;
    w -= lr * (s[0] / (1 - std::pow(o.beta1, t))) / (std::sqrt(s[1] / (1 - std::pow(o.beta2, t))) + o.epsilon);
}
void reference(const Lion::Options& o, double lr, int, double& w, double g, std::array<double, 1>& s) {
    const double c = o.beta1 * s[0] + (1 - o.beta1) * g;
    w -= lr * ((c > 0 ? 1 : c < 0 ? -1 : 0) + o.weight_decay * w);
    s[0] = o.beta2 * s[0] + (1 - o.beta2) * g;
}

void reference(const Adam::Options& o, double lr, int t, double& w, double g, std::array<double, 2>& s) {
    g += o.weight_decay * w;
    s[0] = o.beta1 * s[0] + (1 - o.beta1) * g;
    s[1] = o.beta2 * s[1] + (1 - o.beta2) * g * g;
    w -= lr * (s[0] / (1 - std::pow(o.beta1, t))) / (std::sqrt(s[1] / (1 - std::pow(o.beta2, t))) + o.epsilon);
}
void reference(const Adagrad::Options& o, double lr, int t, double& w, double g, std::array<double, 1>& s) {
    g += o.weight_decay * w;
    s[0] += g * g;
    w -= lr / (1 + (t - 1) * o.lr_decay) * g / (std::sqrt(s[0]) + o.epsilon);
}
void reference(const Sgd::Options& o, double lr, int t, double& w, double g, std::array<double, 1>& s) {
    g += o.weight_decay * w;
    s[0] = t == 1 || o.momentum == 0 ? g : o.momentum * s[0] + (1 - o.dampening) * g;
    w -= lr * (o.nesterov ? g + o.momentum * s[0] : s[0]);
}

template <class Rule>
struct Replica {
    std::vector<float> weight;
    std::array<std::vector<float>, state_count_v<Rule>> state;
    std::vector<bf16> copy;

    explicit Replica(std::vector<float> start, bool with_copy = false) : weight{std::move(start)} {
        for (auto& values : state) values.resize(weight.size());
        if (with_copy) copy.resize(weight.size());
    }
    void fill(const typename Rule::Options& options) {
        for (std::size_t k = 0; k < state.size(); ++k) {
            for (float& value : state[k]) value = initial_state<Rule>(options, k);
        }
    }
    template <class G>
    void step(const typename Rule::Options& options, double lr, int t, const std::vector<G>& gradient,
              GradientTransform transform = {}, SimdLevel level = simd_level()) {
        std::array<std::span<float>, state_count_v<Rule>> spans;
        for (std::size_t k = 0; k < spans.size(); ++k) spans[k] = state[k];
        strata::optim::update<Rule, G, bf16>(Rule::scalars(options, lr, t), transform, gradient, weight, spans, copy,
                                             level);
    }
    [[nodiscard]] bool same_bits(const Replica& other) const {
        const auto same = [](const auto& a, const auto& b) {
            return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
        };
        bool all = same(weight, other.weight) && same(copy, other.copy);
        for (std::size_t k = 0; k < state.size(); ++k) all = all && same(state[k], other.state[k]);
        return all;
    }
};

template <class Rule>
void expect_reference_at_every_length(const typename Rule::Options& options) {
    for (std::size_t n = 0; n <= 67; ++n) {
        Replica<Rule> run{normal_values(n, 1)};
        run.fill(options);
        std::vector<double> weight(run.weight.begin(), run.weight.end());
        std::vector<std::array<double, state_count_v<Rule>>> state(n);
        for (auto& values : state) {
            for (std::size_t k = 0; k < state_count_v<Rule>; ++k) values[k] = initial_state<Rule>(options, k);
        }
        for (int t = 1; t <= 3; ++t) {
            const auto gradient = normal_values(n, 10U + static_cast<unsigned>(t));
            run.step(options, 0.01, t, gradient, 0.5F);
            for (std::size_t i = 0; i < n; ++i) {
                reference(options, 0.01, t, weight[i], 0.5 * static_cast<double>(gradient[i]), state[i]);
                EXPECT_NEAR(run.weight[i], weight[i], 1e-6) << n << ' ' << i;
                for (std::size_t k = 0; k < state_count_v<Rule>; ++k) EXPECT_NEAR(run.state[k][i], state[i][k], 1e-6);
            }
        }
    }
}

TEST(UpdateKernel, AdamWIsItsFormulaAtEveryLength) { expect_reference_at_every_length<AdamW>({.weight_decay = 0.1}); }
TEST(UpdateKernel, LionIsItsFormulaAtEveryLength) { expect_reference_at_every_length<Lion>({.weight_decay = 0.1}); }

TEST(UpdateKernel, AdamIsItsFormulaAtEveryLength) { expect_reference_at_every_length<Adam>({.weight_decay = 0.1}); }
TEST(UpdateKernel, AdagradIsItsFormulaAtEveryLength) {
    expect_reference_at_every_length<Adagrad>({.lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.2});
}
TEST(UpdateKernel, SgdIsItsFormulaAtEveryLength) {
    expect_reference_at_every_length<Sgd>({.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1});
    expect_reference_at_every_length<Sgd>({.momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
    expect_reference_at_every_length<Sgd>({.momentum = 0.0, .dampening = 0.5});
}

// Three steps of torch.optim.SGD in fp64.
TEST(UpdateKernel, SgdMatchesTorch) {
    const auto end = [](const Sgd::Options& options) {
        Replica<Sgd> run{{1.0F, -2.0F, 0.5F}};
        const std::vector<std::vector<float>> gradients{
            {0.5F, 0.25F, -1.0F}, {-1.0F, 0.0F, 2.0F}, {0.125F, 3.0F, -0.5F}};
        for (int t = 1; t <= 3; ++t) run.step(options, 0.1, t, gradients[static_cast<std::size_t>(t) - 1]);
        return run.weight;
    };
    expect_near(end({.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1}), {0.94250206, -2.182915245, 0.514782155},
                1e-6, "dampened");
    expect_near(end({.momentum = 0.9, .weight_decay = 0.1, .nesterov = true}),
                {0.997698646, -2.4952055295, 0.3543375605}, 1e-6, "nesterov");
    expect_near(end({.momentum = 0.0, .dampening = 0.5}), {1.0375, -2.325, 0.45}, 1e-6, "without momentum");
}

std::vector<fp16> halved(const std::vector<float>& values) {
    std::vector<fp16> result;
    for (const float value : values) result.push_back(to_fp16(value));
    return result;
}

template <class Rule, class G>
void expect_levels_agree(bool with_copy) {
    for (const std::size_t n : {1UL, 15UL, 16UL, 17UL, 33UL, 67UL, 65536UL, 150'001UL}) {
        std::vector<Replica<Rule>> runs;
        for (int level = 0; level <= static_cast<int>(simd_level()); ++level) {
            Replica<Rule> run{normal_values(n, 1), with_copy};
            for (int t = 1; t <= 3; ++t) {
                const auto values = normal_values(n, 10U + static_cast<unsigned>(t));
                if constexpr (std::same_as<G, bf16>) {
                    run.step({}, 0.01, t, rounded(values), 0.3F, static_cast<SimdLevel>(level));
                } else if constexpr (std::same_as<G, fp16>) {
                    run.step({}, 0.01, t, halved(values), {0.3F, 0.5F}, static_cast<SimdLevel>(level));
                } else {
                    run.step({}, 0.01, t, values, 0.3F, static_cast<SimdLevel>(level));
                }
            }
            runs.push_back(std::move(run));
        }
        for (const auto& run : runs) EXPECT_TRUE(run.same_bits(runs.front())) << n << " elements";
    }
}

TEST(UpdateKernel, EveryInstructionSetGivesTheSameBits) {
    expect_levels_agree<AdamW, float>(false);
    expect_levels_agree<AdamW, bf16>(true);
    expect_levels_agree<Lion, float>(false);
    expect_levels_agree<Lion, bf16>(true);
    expect_levels_agree<Descent, float>(false);
    expect_levels_agree<Adam, float>(false);
    expect_levels_agree<Adam, fp16>(true);
    expect_levels_agree<Adagrad, fp16>(true);
    expect_levels_agree<Sgd, fp16>(true);
}

TEST(UpdateKernel, AnFp16GradientActsAsItsFp32ValueAndTheFp16CopyIsTheRoundedMaster) {
    for (std::size_t n = 0; n <= 67; ++n) {
        const auto gradient = halved(normal_values(n, 5));
        std::vector<float> wide;
        for (const fp16 value : gradient) wide.push_back(to_float(value));
        Replica<AdamW> full{normal_values(n, 1)};
        full.step({}, 0.01, 1, wide, 0.5F);
        Replica<AdamW> half{normal_values(n, 1)};
        std::vector<fp16> copy(n);
        strata::optim::update<AdamW, fp16, fp16>(AdamW::scalars({}, 0.01, 1), 0.5F, gradient, half.weight,
                                                 {half.state[0], half.state[1]}, copy);
        EXPECT_TRUE(half.same_bits(full)) << n;
        for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(copy[i], to_fp16(full.weight[i])) << i << " of " << n;
    }
}

TEST(UpdateKernel, TheLimitClampsTheScaledGradientAndKeepsNan) {
    Replica<Descent> run{std::vector<float>(5)};
    run.step({}, 1.0, 1, std::vector<float>{4.0F, -4.0F, 0.5F, std::numeric_limits<float>::infinity(), std::nanf("")},
             {0.5F, 1.5F});
    EXPECT_EQ(std::vector<float>(run.weight.begin(), run.weight.begin() + 4),
              (std::vector<float>{-1.5F, 1.5F, -0.25F, -1.5F}));
    EXPECT_TRUE(std::isnan(run.weight[4]));
}

/// Weights and states in bf16, without a master.
template <class Rule>
struct PureReplica {
    std::vector<bf16> weight;
    std::array<std::vector<bf16>, state_count_v<Rule>> state;

    explicit PureReplica(const std::vector<float>& start) : weight{rounded(start)} {
        for (auto& values : state) values.resize(weight.size());
    }
    void step(double lr, int t, const std::vector<bf16>& gradient, std::size_t begin, std::size_t count,
              SimdLevel level = simd_level(), std::int64_t offset = 1000) {
        std::array<std::span<bf16>, state_count_v<Rule>> spans;
        for (std::size_t k = 0; k < spans.size(); ++k) spans[k] = std::span{state[k]}.subspan(begin, count);
        strata::optim::update<Rule, bf16>(
            Rule::scalars({}, lr, t), {}, std::span<const bf16>{gradient}.subspan(begin, count),
            std::span{weight}.subspan(begin, count), spans,
            StochasticRounding{.seed = 7, .step = t, .first_element = offset + static_cast<std::int64_t>(begin)},
            level);
    }
    bool operator==(const PureReplica&) const = default;
};

template <class Rule>
void expect_pure_bits_of_elements_only() {
    constexpr std::size_t n = 150'001;
    const auto start = normal_values(n, 1);
    const auto gradient = rounded(normal_values(n, 2));
    PureReplica<Rule> whole{start};
    for (int t = 1; t <= 2; ++t) whole.step(0.01, t, gradient, 0, n);
    EXPECT_FALSE(whole == PureReplica<Rule>{start});

    PureReplica<Rule> sliced{start};
    for (int t = 1; t <= 2; ++t) {
        for (std::size_t begin = 0; begin < n; begin += 33'333) {
            sliced.step(0.01, t, gradient, begin, std::min<std::size_t>(33'333, n - begin));
        }
    }
    EXPECT_TRUE(whole == sliced) << "cut into slices";
    for (int level = 0; level <= static_cast<int>(simd_level()); ++level) {
        PureReplica<Rule> run{start};
        for (int t = 1; t <= 2; ++t) run.step(0.01, t, gradient, 0, n, static_cast<SimdLevel>(level));
        EXPECT_TRUE(whole == run) << "level " << level;
    }
    PureReplica<Rule> elsewhere{start};
    for (int t = 1; t <= 2; ++t) elsewhere.step(0.01, t, gradient, 0, n, simd_level(), 1001);
    EXPECT_FALSE(whole == elsewhere) << "other elements have other random bits";
}

TEST(UpdateKernel, PureBf16DependsOnSeedStepAndElementOnly) {
    expect_pure_bits_of_elements_only<AdamW>();
    expect_pure_bits_of_elements_only<Lion>();
    expect_pure_bits_of_elements_only<Sgd>();
}

// Every step is a 64th of what bf16 can show beside 1: to nearest, nothing would ever move.
TEST(UpdateKernel, PureBf16FollowsUpdatesThatAreBelowItsPrecision) {
    constexpr std::size_t n = 4096;
    PureReplica<Descent> run{std::vector<float>(n, 1.0F)};
    const std::vector<bf16> gradient(n, to_bf16(1.0F));
    for (int t = 1; t <= 200; ++t) run.step(1.0 / 16384, t, gradient, 0, n);
    double mean = 0;
    for (const bf16 value : run.weight) mean += static_cast<double>(to_float(value)) / n;
    const double expected = 1.0 - 200.0 / 16384;
    EXPECT_NEAR(mean, expected, 4 * 0.007 / std::sqrt(static_cast<double>(n)));
    EXPECT_LT(mean, 1.0 - 150.0 / 16384);
}

TEST(UpdateKernel, ABf16GradientActsAsItsFp32Value) {
    const auto gradient = rounded(normal_values(67, 5));
    std::vector<float> wide;
    for (const bf16 value : gradient) wide.push_back(to_float(value));
    Replica<AdamW> narrow{normal_values(67, 1)};
    Replica<AdamW> full{normal_values(67, 1)};
    narrow.step({}, 0.01, 1, gradient);
    full.step({}, 0.01, 1, wide);
    EXPECT_TRUE(narrow.same_bits(full));
}

TEST(UpdateKernel, TheBf16CopyIsTheRoundedMaster) {
    for (std::size_t n = 0; n <= 67; ++n) {
        Replica<AdamW> run{normal_values(n, 1), true};
        run.step({}, 0.01, 1, rounded(normal_values(n, 2)));
        for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(run.copy[i], to_bf16(run.weight[i])) << i << " of " << n;
    }
}

TEST(UpdateKernel, PaddingStaysZero) {
    Replica<AdamW> adamw{std::vector<float>(20)};
    Replica<Lion> lion{std::vector<float>(20)};
    for (int t = 1; t <= 3; ++t) {
        adamw.step({}, 0.01, t, std::vector<float>(20));
        lion.step({}, 0.01, t, std::vector<float>(20));
    }
    EXPECT_TRUE(adamw.same_bits(Replica<AdamW>{std::vector<float>(20)}));
    EXPECT_TRUE(lion.same_bits(Replica<Lion>{std::vector<float>(20)}));
}

TEST(UpdateKernel, ARuleWithoutStateWorks) {
    Replica<Descent> run{{1.0F, 2.0F, 3.0F}};
    run.step({}, 0.5, 1, std::vector<float>{2.0F, -2.0F, 0.0F});
    EXPECT_EQ(run.weight, (std::vector<float>{0.0F, 3.0F, 3.0F}));
}

/// Tolerance: the references' own fp32 results differ from fp64 by up to 7.1e-7 after ten steps.
template <class Rule>
void expect_golden(const Golden& golden, const std::string& variant, const typename Rule::Options& options, double lr,
                   const std::vector<std::string>& state_names) {
    for (int p = 0; p < 4; ++p) {
        const std::string parameter = ".p" + std::to_string(p);
        Replica<Rule> run{narrow(golden.read("in.init" + parameter))};
        run.fill(options);
        for (int t = 1; t <= 10; ++t) {
            const std::string step = ".s" + std::to_string(t);
            run.step(options, lr, t, narrow(golden.read("in.grad" + step + parameter)));
            expect_near(run.weight, golden.read("out." + variant + step + parameter), 1e-6, variant + step + parameter);
        }
        for (std::size_t k = 0; k < state_names.size(); ++k) {
            expect_near(run.state[k], golden.read("state." + variant + ".s10." + state_names[k] + parameter), 1e-6,
                        variant + " " + state_names[k]);
        }
    }
}

TEST(UpdateKernel, AdamWMatchesTorch) {
    const Golden golden{"optim_torch"};
    if (!golden.exists()) GTEST_SKIP() << golden.path() << " is not there";
    const std::vector<std::string> names{"exp_avg", "exp_avg_sq"};
    expect_golden<AdamW>(golden, "adamw_a", {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.01}, 0.01,
                         names);
    expect_golden<AdamW>(golden, "adamw_b", {.beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.2},
                         1.0 / 300, names);
    expect_golden<AdamW>(golden, "adamw_nowd", {.beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.0},
                         0.01, names);
    expect_golden<AdamW>(golden, "adam", {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.0}, 0.01,
                         names);
}

TEST(UpdateKernel, AdamMatchesTorch) {
    const Golden golden{"optim_torch"};
    if (!golden.exists()) GTEST_SKIP() << golden.path() << " is not there";
    const std::vector<std::string> names{"exp_avg", "exp_avg_sq"};
    expect_golden<Adam>(golden, "adam", {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.0}, 0.01,
                        names);
    expect_golden<Adam>(golden, "adam_l2", {.beta1 = 0.95, .beta2 = 0.98, .epsilon = 1e-5, .weight_decay = 0.05}, 0.01,
                        names);
}

TEST(UpdateKernel, AdagradMatchesTorch) {
    const Golden golden{"optim_torch"};
    if (!golden.exists()) GTEST_SKIP() << golden.path() << " is not there";
    expect_golden<Adagrad>(golden, "adagrad", {}, 0.01, {"sum"});
    expect_golden<Adagrad>(golden, "adagrad_full",
                           {.lr_decay = 0.1, .epsilon = 1e-8, .weight_decay = 0.03, .initial_accumulator_value = 0.1},
                           0.02, {"sum"});
}

TEST(UpdateKernel, LionMatchesItsPaper) {
    const Golden golden{"optim_paper"};
    if (!golden.exists()) GTEST_SKIP() << golden.path() << " is not there";
    expect_golden<Lion>(golden, "lion", {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.0}, 0.01, {"m"});
    expect_golden<Lion>(golden, "lion_wd", {.beta1 = 0.95, .beta2 = 0.98, .weight_decay = 0.3}, 0.005, {"m"});
}

}  // namespace
