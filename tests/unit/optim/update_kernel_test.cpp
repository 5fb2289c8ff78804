// Update rules element by element: against double arithmetic, the reference implementations, and each other's levels.

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <strata/core/bf16.hpp>
#include <strata/optim/adamw.hpp>
#include <strata/optim/lion.hpp>
#include <strata/optim/update_kernel.hpp>
#include <strata/storage/safetensors.hpp>

namespace {

using strata::AdamW;
using strata::bf16;
using strata::Lion;
using strata::to_bf16;
using strata::to_float;
using strata::optim::simd_level;
using strata::optim::SimdLevel;
using strata::optim::state_count_v;

/// A rule of a user's own: no state at all.
struct Descent {
    struct Options {};
    struct Scalars {
        float lr;
    };
    static constexpr std::array<std::string_view, 0> state_names{};
    static Scalars scalars(const Options&, double lr, std::int64_t) { return {static_cast<float>(lr)}; }
    [[gnu::always_inline]] static void apply(float& weight, float gradient, float*, const Scalars& s) {
        weight -= s.lr * gradient;
    }
};

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

template <class Rule>
struct Replica {
    std::vector<float> weight;
    std::array<std::vector<float>, state_count_v<Rule>> state;
    std::vector<bf16> copy;

    explicit Replica(std::vector<float> start, bool with_copy = false) : weight{std::move(start)} {
        for (auto& values : state) values.resize(weight.size());
        if (with_copy) copy.resize(weight.size());
    }
    template <class G>
    void step(const typename Rule::Options& options, double lr, int t, const std::vector<G>& gradient,
              float scale = 1.0F, SimdLevel level = simd_level()) {
        std::array<std::span<float>, state_count_v<Rule>> spans;
        for (std::size_t k = 0; k < spans.size(); ++k) spans[k] = state[k];
        strata::optim::update<Rule, G>(Rule::scalars(options, lr, t), scale, gradient, weight, spans, copy, level);
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

std::vector<float> normal_values(std::size_t n, unsigned seed) {
    std::mt19937 random{seed};
    std::normal_distribution<float> normal;
    std::vector<float> values(n);
    for (float& value : values) value = normal(random);
    return values;
}
std::vector<bf16> rounded(const std::vector<float>& values) {
    std::vector<bf16> result;
    for (const float value : values) result.push_back(to_bf16(value));
    return result;
}

template <class Rule>
void expect_reference_at_every_length(const typename Rule::Options& options) {
    for (std::size_t n = 0; n <= 67; ++n) {
        Replica<Rule> run{normal_values(n, 1)};
        std::vector<double> weight(run.weight.begin(), run.weight.end());
        std::vector<std::array<double, state_count_v<Rule>>> state(n);
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

/// Golden tensors: weights, gradients and states of ten steps of the reference implementations.
class Golden {
public:
    explicit Golden(const std::string& name)
        : path_{std::filesystem::path{STRATA_REFERENCE_DIR} / "golden" / (name + ".safetensors")} {}
    [[nodiscard]] bool exists() const { return std::filesystem::exists(path_); }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::vector<double> read(const std::string& name) const {
        const strata::storage::SafetensorsFile file{path_};
        const auto& entry = file.header().at(name);
        std::vector<std::byte> bytes(entry.end - entry.begin);
        file.read(entry, bytes);
        if (entry.dtype == strata::storage::Dtype::f64) return as<double>(bytes);
        EXPECT_EQ(entry.dtype, strata::storage::Dtype::f32);
        return as<float>(bytes);
    }

private:
    template <class T>
    static std::vector<double> as(const std::vector<std::byte>& bytes) {
        std::vector<T> values(bytes.size() / sizeof(T));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return {values.begin(), values.end()};
    }
    std::filesystem::path path_;
};

std::vector<float> narrow(const std::vector<double>& values) { return {values.begin(), values.end()}; }

void expect_near(const std::vector<float>& ours, const std::vector<double>& theirs, double tolerance,
                 const std::string& what) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
        EXPECT_NEAR(ours[i], theirs[i], tolerance) << what << " [" << i << ']';
}

/// Tolerance: the references' own fp32 results differ from fp64 by up to 7.1e-7 after ten steps.
template <class Rule>
void expect_golden(const Golden& golden, const std::string& variant, const typename Rule::Options& options, double lr,
                   const std::vector<std::string>& state_names) {
    for (int p = 0; p < 4; ++p) {
        const std::string parameter = ".p" + std::to_string(p);
        Replica<Rule> run{narrow(golden.read("in.init" + parameter))};
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

TEST(UpdateKernel, LionMatchesItsPaper) {
    const Golden golden{"optim_paper"};
    if (!golden.exists()) GTEST_SKIP() << golden.path() << " is not there";
    expect_golden<Lion>(golden, "lion", {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.0}, 0.01, {"m"});
    expect_golden<Lion>(golden, "lion_wd", {.beta1 = 0.95, .beta2 = 0.98, .weight_decay = 0.3}, 0.005, {"m"});
}

}  // namespace
