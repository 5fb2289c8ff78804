#pragma once
// strata/testing/rule_conformance.hpp - rule_failures(): does an update rule do what an engine relies on?

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <strata/core/bf16.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/testing/detail/rule_run.hpp>

namespace strata::testing {
namespace detail {

template <optim::UpdateRule Rule>
class RuleLaws {
    using Options = typename Rule::Options;
    template <class Kept>
    using Run = RuleRun<Rule, Kept>;

public:
    RuleLaws(const Options& options, double lr) : options_{options}, lr_{lr} {}

    std::vector<std::string> run() && {
        names();
        numbers();
        starts();
        stays_zero();
        stays_finite();
        has_one_answer<float>("fp32");
        has_one_answer<bf16>("bf16");
        learns();
        return std::move(failures_);
    }

private:
    /// Sizes of parameters, around those of vectors and of the kernels' chunks.
    static std::vector<std::size_t> parameters() { return {1, 15, 64, 7, 70'001, 129}; }
    static std::vector<std::size_t> whole() {
        const auto all = parameters();
        return {std::accumulate(all.begin(), all.end(), std::size_t{0})};
    }
    /// Runs that end where a tier's may: anywhere, or behind a parameter where norms are formed of whole ones.
    static std::vector<std::size_t> windows() {
        if constexpr (optim::ElementwiseRule<Rule>) return {3, 1, 40, 65'000, whole().front() - 65'044};
        return parameters();
    }
    static std::vector<float> values(std::size_t numel, std::size_t seed) {
        std::vector<float> all(numel);
        for (std::size_t i = 0; i < numel; ++i)
            all[i] = static_cast<float>(std::sin(1.3 * static_cast<double>(i) + 0.7 * static_cast<double>(seed)));
        return all;
    }
    void require(bool holds, const std::string& sentence) {
        if (!holds) failures_.push_back(sentence);
    }

    void names() {
        std::set<std::string_view> seen{"weight", "average"};  // what a checkpoint has beside them
        for (const std::string_view name : Rule::state_names) {
            require(!name.empty(), "state_names has an empty name: a checkpoint keeps states by their names");
            require(seen.insert(name).second,
                    "state_names has '" + std::string{name} +
                        "' twice, or it is 'weight' or 'average', which a checkpoint has itself");
        }
    }

    /// What the options say of themselves is looked at before training, by their own check() too.
    void numbers() {
        OptionCheck check;
        check.part("options", options_);
        require(check.found_nothing(), "its own check refuses the options that were given");
        visit_options<Options>([&](const auto& option) {
            using Member = typename std::remove_cvref_t<decltype(option)>::member_type;
            if constexpr (std::floating_point<Member>) {
                const auto refused = [&](double value) {
                    Options options = options_;
                    options.*option.member = static_cast<Member>(value);
                    OptionCheck looked;
                    looked.part("options", options);
                    return !looked.found_nothing();
                };
                const std::string name{option.name};
                require(refused(std::numeric_limits<double>::quiet_NaN()), "its check accepts NaN for " + name);
                const auto beyond = [](double end) { return end + std::max(1.0, std::abs(end)); };
                if (std::isfinite(option.range.most))
                    require(refused(beyond(option.range.most)), "its check accepts a " + name + " above its range");
                if (std::isfinite(option.range.least))
                    require(refused(-beyond(-option.range.least)), "its check accepts a " + name + " below its range");
            }
        });
    }

    void starts() {
        for (std::size_t k = 0; k < optim::state_count_v<Rule>; ++k) {
            const float value = optim::initial_state<Rule>(options_, k);
            require(std::isfinite(value) && value == optim::initial_state<Rule>(options_, k),
                    "state " + std::string{Rule::state_names[k]} + " starts at no fixed finite number");
        }
    }

    /// Buffers are padded with weights of 0 that never get a gradient.
    void stays_zero() {
        for (const bool initial : {true, false}) {
            const std::vector<float> zeros(40);
            Run<float> run{options_, {40}, zeros};
            if (!initial)
                for (auto& values : run.state) std::fill(values.begin(), values.end(), 0.0F);
            for (std::int64_t step = 1; step <= 5; ++step) run.step(lr_, step, zeros, std::vector<std::size_t>{40});
            bool zero = std::ranges::all_of(run.weight, [](float value) { return value == 0; });
            for (const auto& values : run.state)
                zero = zero && (initial || std::ranges::all_of(values, [](float value) { return value == 0; }));
            require(zero, initial ? "a weight of 0 does not stay 0 without a gradient, as padding must"
                                  : "weight 0, gradient 0 and state 0 do not stay 0, as padding must");
        }
    }

    void stays_finite() {
        const std::array<float, 5> weights{0, 1, -1000, 1e-20F, 3}, gradients{0, 1e-30F, -1e-4F, 1, 1e8F};
        std::vector<float> weight, gradient;
        for (const float w : weights) weight.insert(weight.end(), gradients.size(), w);
        for (std::size_t i = 0; i < weights.size(); ++i)
            gradient.insert(gradient.end(), gradients.begin(), gradients.end());
        const std::vector<std::size_t> all{weight.size()};
        Run<float> run{options_, all, weight};
        for (std::int64_t step = 1; step <= 60; ++step) {
            // The same sign for a while, the other one, and steps of a long run.
            if (step % 20 == 0)
                for (float& value : gradient) value = -value;
            run.step(lr_, step <= 50 ? step : step * 100'000'000, gradient, all);
            bool finite = true;
            run.for_each([&](float value) { finite = finite && std::isfinite(value); });
            if (finite) continue;
            return require(false, "finite gradients make a number that is not, in step " + std::to_string(step) +
                                      ": a gradient of 0 divided by 0?");
        }
    }

    /// The same bits however elements are cut into runs, in vectors and one by one, and whatever else was computed before.
    template <class Kept>
    void has_one_answer(const std::string& kept) {
        const std::size_t numel = whole().front();
        const auto made = [&](std::span<const std::size_t> cut, core::SimdLevel level, bool disturbed) {
            Run<Kept> run{options_, parameters(), values(numel, 0)};
            for (std::int64_t step = 1; step <= 3; ++step) {
                if (disturbed) {
                    Run<Kept> other{options_, {5}, values(5, 9)};
                    other.step(10 * lr_, 7, values(5, 8), std::vector<std::size_t>{5});
                }
                run.step(lr_, step, values(numel, static_cast<std::size_t>(step)), cut, level);
            }
            return run;
        };
        const Run<Kept> expected = made(whole(), core::simd_level(), false);
        require(made(whole(), core::simd_level(), true).has_bits_of(expected),
                "steps depend on more than options, rate, step, gradient and state, in " + kept);
        require(made(windows(), core::simd_level(), false).has_bits_of(expected),
                "other bits where elements come in other runs, in " + kept);
        for (const auto level : {core::SimdLevel::baseline, core::SimdLevel::avx2, core::SimdLevel::avx512})
            if (level <= core::simd_level())
                require(made(whole(), level, false).has_bits_of(expected),
                        "other bits with other vector instructions, in " + kept);
        if constexpr (optim::ElementwiseRule<Rule>)
            require(made(std::vector<std::size_t>(numel, 1), core::SimdLevel::baseline, false).has_bits_of(expected),
                    "other bits in vectors than element by element, in " + kept);
    }

    /// Downhill on the way to 1, with one rate at least of those that people use.
    void learns() {
        const std::vector<std::size_t> all{10};
        std::vector<float> start(10);
        for (std::size_t i = 0; i < start.size(); ++i) start[i] = 3.0F + static_cast<float>(i % 5);
        const auto loss_after = [&](double lr) {
            Run<float> run{options_, all, start};
            std::vector<float> gradient(start.size());
            for (std::int64_t step = 1; step <= 100; ++step) {
                std::ranges::transform(run.weight, gradient.begin(), [](float weight) { return weight - 1; });
                run.step(lr, step, gradient, all);
            }
            double loss = 0;
            for (const float weight : run.weight) loss += std::pow(static_cast<double>(weight) - 1, 2);
            return loss;
        };
        double before = 0;
        for (const float weight : start) before += std::pow(static_cast<double>(weight) - 1, 2);
        const auto lower = [&](double lr) { return loss_after(lr) < 0.9 * before; };
        const std::array rates{1.0, 1e-1, 1e-2, 1e-3, 1e-4};
        require(std::ranges::any_of(rates, lower),
                "no learning rate from 1e-4 to 1 makes a square smaller in 100 steps");
    }

    Options options_;
    double lr_;
    std::vector<std::string> failures_;
};

}  // namespace detail

/// What a rule does otherwise than optim::UpdateRule promises, a sentence each; empty if it conforms. Local, on the CPU,
/// without libtorch. Needs no test framework: `assert(strata::testing::rule_failures<MyRule>().empty());`
///
///   * State names are unique, and none of those that a checkpoint has itself; what states start at is fixed and finite.
///   * The options' own check refuses what is outside of the ranges that they describe.
///   * A weight of 0 stays 0 while its gradient is 0: padding. What another weight does without a gradient, decay say, is
///     the rule's own affair.
///   * Finite gradients, 0 among them, leave finite numbers, in the first steps and in the billionth.
///   * A step follows from options, rate, step, gradient and state alone, and has the same bits in one run of elements or in
///     several, in vectors of any width and one by one, in fp32 and in bf16.
///   * It goes downhill.
/// That it is the rule that its paper means is for a test of one's own, against its formula in double.
///
///   options  that it is tried with; those that matter should not be 0
///   lr       learning rate of the steps, but for those that look whether it learns
template <optim::UpdateRule Rule>
[[nodiscard]] std::vector<std::string> rule_failures(const typename Rule::Options& options = {}, double lr = 1e-3) {
    return detail::RuleLaws<Rule>{options, lr}.run();
}

}  // namespace strata::testing
