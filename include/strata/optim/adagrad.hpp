#pragma once
// strata/optim/adagrad.hpp - Adagrad: every element's rate falls with the squares it has seen.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <strata/core/host_device.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/optim/square_root.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/optim/usual_options.hpp>

namespace strata {

/// Adagrad (Duchi, Hazan and Singer 2011, JMLR 12:2121-2159) as torch.optim.Adagrad computes it:
///
///   g <- g + weight_decay w
///   s <- s + g g                                    s starts at initial_accumulator_value
///   w <- w - lr / (1 + (t - 1) lr_decay)  g / (sqrt(s) + epsilon)
struct Adagrad {
    struct Options {
        double lr_decay = 0.0;
        double epsilon = 1e-10;
        double weight_decay = optim::L2Penalty::usual;
        double initial_accumulator_value = 0.0;

        static void describe(auto& option) {
            option("lr_decay", &Options::lr_decay, {0, 1e6},
                   "How the learning rate falls: divided by 1 + this, times the steps done");
            optim::describe_epsilon<Options>(
                option, "Added to the root of the sum of squares, so that nothing is divided by 0");
            optim::describe_weight_decay<Options>(option, optim::L2Penalty::help);
            option("initial_accumulator_value", &Options::initial_accumulator_value, {0, 1e30},
                   "What the sums of squares start at");
        }
    };
    static constexpr std::array<std::string_view, 1> state_names{"sum"};

    struct Scalars {
        float weight_decay;
        float epsilon;
        float step_size;  ///< lr / (1 + (t - 1) lr_decay)
    };

    static Scalars scalars(const Options& options, double lr, std::int64_t step) noexcept {
        return {.weight_decay = static_cast<float>(options.weight_decay),
                .epsilon = static_cast<float>(options.epsilon),
                .step_size = static_cast<float>(lr / (1.0 + static_cast<double>(step - 1) * options.lr_decay))};
    }

    static constexpr float initial_state(const Options& options, std::size_t) noexcept {
        return static_cast<float>(options.initial_accumulator_value);
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        float& sum = state[0];
        const float penalized = gradient + s.weight_decay * weight;
        sum = sum + penalized * penalized;
        weight = weight - s.step_size * penalized / (optim::square_root(sum) + s.epsilon);
    }
};

static_assert(optim::ElementwiseRule<Adagrad>);

}  // namespace strata
