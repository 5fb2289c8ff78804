#pragma once
// strata/optim/sgd.hpp - Sgd: gradient descent with momentum.

#include <array>
#include <cstdint>
#include <string_view>

#include <strata/core/host_device.hpp>
#include <strata/core/option_check.hpp>
#include <strata/core/option_description.hpp>
#include <strata/core/ranges.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/optim/usual_options.hpp>

namespace strata {

/// Stochastic gradient descent with momentum (Sutskever et al. 2013, ICML) as torch.optim.SGD computes it:
///
///   g <- g + weight_decay w
///   b <- momentum b + (1 - dampening) g             b <- g at the first step
///   w <- w - lr b                                   nesterov: w <- w - lr (g + momentum b)
///
/// Without momentum w <- w - lr g, and dampening does not enter; the buffer is then kept for nothing.
struct Sgd {
    struct Options {
        double momentum = 0.9;
        double dampening = 0.0;
        double weight_decay = optim::L2Penalty::usual;
        bool nesterov = false;  ///< with momentum, and without dampening

        static void describe(auto& option) {
            option("momentum", &Options::momentum, ranges::momentum, "Decay of the momentum, a step");
            option("dampening", &Options::dampening, {0, 1}, "Share of a gradient that is kept out of the momentum");
            optim::describe_weight_decay<Options>(option, optim::L2Penalty::help);
            option("nesterov", &Options::nesterov,
                   "Steps go from where the momentum alone would lead; with momentum, and without dampening");
        }
        /// Beside the ranges: what nesterov goes with.
        void check(OptionCheck& check) const {
            check.described(*this);
            if (nesterov && (momentum == 0.0 || dampening != 0.0))
                check.refuse(
                    check.name("nesterov") + " is true with " + check.name("momentum") + " " +
                        OptionCheck::shown(momentum) + " and " + check.name("dampening") + " " +
                        OptionCheck::shown(dampening),
                    "give it a momentum above 0 and no dampening, or leave " + check.name("nesterov") + " out");
        }
    };
    static constexpr std::array<std::string_view, 1> state_names{"momentum_buffer"};

    struct Scalars {
        float weight_decay;
        float momentum;
        float one_minus_dampening;           ///< 1 at the first step
        float gradient_share, buffer_share;  ///< of the direction: 0 and 1, with nesterov 1 and momentum
        float lr;
    };

    static Scalars scalars(const Options& options, double lr, std::int64_t step) noexcept {
        const bool undamped = step == 1 || options.momentum == 0.0;
        return {.weight_decay = static_cast<float>(options.weight_decay),
                .momentum = static_cast<float>(options.momentum),
                .one_minus_dampening = undamped ? 1.0F : static_cast<float>(1.0 - options.dampening),
                .gradient_share = options.nesterov ? 1.0F : 0.0F,
                .buffer_share = options.nesterov ? static_cast<float>(options.momentum) : 1.0F,
                .lr = static_cast<float>(lr)};
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        float& buffer = state[0];
        const float penalized = gradient + s.weight_decay * weight;
        buffer = s.momentum * buffer + s.one_minus_dampening * penalized;
        weight = weight - s.lr * (s.gradient_share * penalized + s.buffer_share * buffer);
    }
};

static_assert(optim::ElementwiseRule<Sgd>);

}  // namespace strata
