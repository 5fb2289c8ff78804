#pragma once
// strata/optim/lamb.hpp - Lamb: Adam's direction, a step as long as each parameter's norm allows.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include <strata/core/host_device.hpp>
#include <strata/core/option_check.hpp>
#include <strata/optim/square_root.hpp>
#include <strata/optim/update_rule.hpp>
#include <strata/optim/usual_options.hpp>

namespace strata {

/// LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2), for large batches:
///
///   m <- beta1 m + (1 - beta1) g
///   v <- beta2 v + (1 - beta2) g g
///   u <- (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay w
///   w <- w - lr phi(|w|) / |u|  u                   ratio 1 where |w| or |u| is 0
///
/// Norms are those of one whole parameter tensor. phi clips to min_weight_norm .. max_weight_norm; by default it is the
/// identity.
struct Lamb {
    using Usual = optim::MomentOptions<optim::L2Penalty>;
    struct Options {
        double beta1 = Usual{}.beta1;
        double beta2 = Usual{}.beta2;
        double epsilon = 1e-6;
        double weight_decay = Usual{}.weight_decay;
        bool bias_correction = true;
        double min_weight_norm = 0.0;
        double max_weight_norm = std::numeric_limits<double>::infinity();

        static void describe(auto& option) {
            optim::describe_beta1<Options>(option);
            optim::describe_beta2<Options>(option);
            optim::describe_epsilon<Options>(option);
            optim::describe_weight_decay<Options>(option, "Times the weight, added to its direction");
            option("bias_correction", &Options::bias_correction,
                   "Means are divided by what they lack at first, as Adam does");
            option("min_weight_norm", &Options::min_weight_norm, {0, 1e30},
                   "Norms of weights below this count as this");
            option("max_weight_norm", &Options::max_weight_norm, {0}, "Norms of weights above this count as this");
        }
        /// Beside the ranges: the norms' limits are in order.
        void check(OptionCheck& check) const {
            if (check.described(*this)) check.number("max_weight_norm", max_weight_norm, {min_weight_norm});
        }
    };
    static constexpr std::array<std::string_view, 2> state_names{"exp_avg", "exp_avg_sq"};

    struct Scalars {
        float beta1, one_minus_beta1;
        float beta2, one_minus_beta2;
        float inverse_correction1;       ///< 1 / (1 - beta1^t)
        float inverse_sqrt_correction2;  ///< 1 / sqrt(1 - beta2^t)
        float epsilon;
        float weight_decay;
        float lr;
    };

    static Scalars scalars(const Options& options, double lr, std::int64_t step) noexcept {
        const auto correction = [&](double beta) {
            return options.bias_correction ? 1.0 - std::pow(beta, static_cast<double>(step)) : 1.0;
        };
        return {.beta1 = static_cast<float>(options.beta1),
                .one_minus_beta1 = static_cast<float>(1.0 - options.beta1),
                .beta2 = static_cast<float>(options.beta2),
                .one_minus_beta2 = static_cast<float>(1.0 - options.beta2),
                .inverse_correction1 = static_cast<float>(1.0 / correction(options.beta1)),
                .inverse_sqrt_correction2 = static_cast<float>(1.0 / std::sqrt(correction(options.beta2))),
                .epsilon = static_cast<float>(options.epsilon),
                .weight_decay = static_cast<float>(options.weight_decay),
                .lr = static_cast<float>(lr)};
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void advance(float gradient, float, float* state,
                                                                  const Scalars& s) noexcept {
        state[0] = s.beta1 * state[0] + s.one_minus_beta1 * gradient;
        state[1] = s.beta2 * state[1] + s.one_minus_beta2 * gradient * gradient;
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static float direction(float weight, const float* state,
                                                                     const Scalars& s) noexcept {
        const float denominator = optim::square_root(state[1]) * s.inverse_sqrt_correction2 + s.epsilon;
        return state[0] * s.inverse_correction1 / denominator + s.weight_decay * weight;
    }

    static double trust_ratio(const Options& options, double weight_norm, double direction_norm) noexcept {
        if (weight_norm == 0.0 || direction_norm == 0.0) return 1.0;
        return std::clamp(weight_norm, options.min_weight_norm, options.max_weight_norm) / direction_norm;
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float direction, float ratio,
                                                                const Scalars& s) noexcept {
        weight = weight - s.lr * ratio * direction;
    }
};

static_assert(optim::LayerwiseRule<Lamb>);

}  // namespace strata
