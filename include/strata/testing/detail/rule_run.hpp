#pragma once
// strata/testing/detail/rule_run.hpp - RuleRun: elements under an update rule, for rule_failures().

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <strata/core/bf16.hpp>
#include <strata/core/elements.hpp>
#include <strata/core/simd.hpp>
#include <strata/optim/layerwise_kernel.hpp>
#include <strata/optim/stochastic_rounding.hpp>
#include <strata/optim/update_kernel.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata::testing::detail {

/// Elements under a rule, what it remembers of them, and its steps over them.
template <class Rule, optim::KeptElement Kept>
class RuleRun {
    static constexpr std::size_t states = optim::state_count_v<Rule>;

public:
    /// One parameter of each of these sizes, side by side.
    RuleRun(const typename Rule::Options& options, std::vector<std::size_t> parameters, std::span<const float> weights)
        : options_{options}, parameters_{std::move(parameters)} {
        for (const float value : weights) weight.push_back(to_element<Kept>(value));
        for (std::size_t k = 0; k < states; ++k)
            state[k].assign(weight.size(), to_element<Kept>(optim::initial_state<Rule>(options, k)));
    }

    /// One step over all elements, as a rank makes it.
    ///
    ///   gradient  of each element
    ///   windows   sizes of the runs that it is made in, all elements together; whole parameters for a LayerwiseRule
    void step(double lr, std::int64_t number, std::span<const float> gradient, std::span<const std::size_t> windows,
              core::SimdLevel level = core::simd_level()) {
        const auto scalars = Rule::scalars(options_, lr, number);
        if constexpr (optim::ElementwiseRule<Rule>) {
            for_windows(windows, [&](std::size_t begin, std::size_t numel) {
                const auto gradients = gradient.subspan(begin, numel);
                const auto weights = std::span{weight}.subspan(begin, numel);
                if constexpr (std::same_as<Kept, float>)
                    optim::update<Rule, float>(scalars, {}, gradients, weights, states_of(begin, numel), level);
                else
                    optim::update<Rule, float>(scalars, {}, gradients, weights, states_of(begin, numel),
                                               rounding(number, begin), level);
            });
        } else {
            std::vector<optim::NormSquares> norms(parameters_.size());
            for_windows(windows, [&](std::size_t begin, std::size_t numel) {
                optim::advance<Rule, float, Kept>(scalars, {}, gradient.subspan(begin, numel),
                                                  std::span{weight}.subspan(begin, numel), states_of(begin, numel),
                                                  segments_of(begin, numel), norms, rounding(number, begin), level);
            });
            const auto ratios = optim::trust_ratios<Rule>(options_, norms);
            for_windows(windows, [&](std::size_t begin, std::size_t numel) {
                const auto weights = std::span{weight}.subspan(begin, numel);
                if constexpr (std::same_as<Kept, float>)
                    optim::apply_direction<Rule>(scalars, weights, states_of(begin, numel), segments_of(begin, numel),
                                                 ratios, level);
                else
                    optim::apply_direction<Rule>(scalars, weights, states_of(begin, numel), segments_of(begin, numel),
                                                 ratios, rounding(number, begin), level);
            });
        }
    }

    /// Calls `call` with every number that is kept.
    template <class Call>
    void for_each(Call&& call) const {
        for (const Kept value : weight) call(to_float(value));
        for (const auto& values : state)
            for (const Kept value : values) call(to_float(value));
    }
    [[nodiscard]] bool has_bits_of(const RuleRun& other) const {
        const auto same = [](const std::vector<Kept>& a, const std::vector<Kept>& b) {
            return std::memcmp(a.data(), b.data(), a.size() * sizeof(Kept)) == 0;
        };
        bool all = same(weight, other.weight);
        for (std::size_t k = 0; k < states; ++k) all = all && same(state[k], other.state[k]);
        return all;
    }

    std::vector<Kept> weight;
    std::array<std::vector<Kept>, states> state;

private:
    template <class Call>
    static void for_windows(std::span<const std::size_t> windows, Call&& call) {
        std::size_t begin = 0;
        for (const std::size_t numel : windows) call(std::exchange(begin, begin + numel), numel);
    }
    [[nodiscard]] std::array<std::span<Kept>, states> states_of(std::size_t begin, std::size_t numel) {
        std::array<std::span<Kept>, states> spans;
        for (std::size_t k = 0; k < states; ++k) spans[k] = std::span{state[k]}.subspan(begin, numel);
        return spans;
    }
    [[nodiscard]] static optim::StochasticRounding rounding(std::int64_t step, std::size_t begin) {
        return {.seed = 42, .step = step, .first_element = static_cast<std::int64_t>(begin)};
    }
    [[nodiscard]] std::vector<optim::Segment> segments_of(std::size_t begin, std::size_t numel) const {
        std::vector<optim::Segment> segments;
        std::size_t at = 0;
        for (std::size_t i = 0; i < parameters_.size(); at += parameters_[i++])
            if (at >= begin && at < begin + numel)
                segments.push_back(
                    {static_cast<std::int64_t>(at - begin), static_cast<std::int64_t>(parameters_[i]), i});
        return segments;
    }

    typename Rule::Options options_;
    std::vector<std::size_t> parameters_;
};

}  // namespace strata::testing::detail
