#pragma once
// strata/optim/lion.hpp - Lion: the sign of an interpolated momentum; one state instead of two.

#include <array>
#include <cstdint>
#include <string_view>

#include <strata/core/host_device.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/optim/usual_options.hpp>

namespace strata {

/// Lion (Chen et al. 2023, arXiv:2302.06675, algorithm 2):
///
///   c <- beta1 m + (1 - beta1) g
///   w <- w - lr (sign(c) + weight_decay w)          sign(0) = 0
///   m <- beta2 m + (1 - beta2) g
///
/// Its steps are larger than AdamW's: take 3 to 10 times less learning rate and as much more weight decay.
struct Lion {
    struct Options {
        double beta1 = 0.9;
        double beta2 = 0.99;
        double weight_decay = 0.0;

        static void describe(auto& option) {
            optim::describe_beta1<Options>(option, "Share of the momentum in the direction of a step");
            optim::describe_beta2<Options>(option, "Decay of the momentum, a step");
            optim::describe_weight_decay<Options>(option, optim::DecoupledDecay::help);
        }
    };
    static constexpr std::array<std::string_view, 1> state_names{"exp_avg"};

    struct Scalars {
        float decay;  ///< 1 - lr weight_decay
        float beta1, one_minus_beta1;
        float beta2, one_minus_beta2;
        float lr;
    };

    static Scalars scalars(const Options& options, double lr, std::int64_t) noexcept {
        return {.decay = static_cast<float>(1.0 - lr * options.weight_decay),
                .beta1 = static_cast<float>(options.beta1),
                .one_minus_beta1 = static_cast<float>(1.0 - options.beta1),
                .beta2 = static_cast<float>(options.beta2),
                .one_minus_beta2 = static_cast<float>(1.0 - options.beta2),
                .lr = static_cast<float>(lr)};
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        float& exp_avg = state[0];
        const float direction = s.beta1 * exp_avg + s.one_minus_beta1 * gradient;
        const float sign = static_cast<float>(direction > 0.0F) - static_cast<float>(direction < 0.0F);
        weight = s.decay * weight - s.lr * sign;
        exp_avg = s.beta2 * exp_avg + s.one_minus_beta2 * gradient;
    }
};

static_assert(optim::UpdateRule<Lion>);

}  // namespace strata
