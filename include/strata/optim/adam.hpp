#pragma once
// strata/optim/adam.hpp - Adam: adaptive moments, with weight decay inside the gradient.

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <strata/optim/simd.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata {

/// Adam (Kingma and Ba 2015, arXiv:1412.6980, algorithm 1) as torch.optim.Adam computes it, L2 penalty included:
///
///   g <- g + weight_decay w
///   m <- beta1 m + (1 - beta1) g
///   v <- beta2 v + (1 - beta2) g g
///   w <- w - lr / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
///
/// The penalty is divided by sqrt(v) like the rest of the gradient; AdamW decays without that.
struct Adam {
    struct Options {
        double beta1 = 0.9;
        double beta2 = 0.999;
        double epsilon = 1e-8;
        double weight_decay = 0.0;
    };
    static constexpr std::array<std::string_view, 2> state_names{"exp_avg", "exp_avg_sq"};

    struct Scalars {
        float weight_decay;
        float beta1, one_minus_beta1;
        float beta2, one_minus_beta2;
        float inverse_sqrt_correction2;     ///< 1 / sqrt(1 - beta2^t)
        float epsilon;
        float step_size;                    ///< lr / (1 - beta1^t)
    };

    static Scalars scalars(const Options& options, double lr, std::int64_t step) noexcept {
        const double correction1 = 1.0 - std::pow(options.beta1, static_cast<double>(step));
        const double correction2 = 1.0 - std::pow(options.beta2, static_cast<double>(step));
        return {.weight_decay = static_cast<float>(options.weight_decay),
                .beta1 = static_cast<float>(options.beta1),
                .one_minus_beta1 = static_cast<float>(1.0 - options.beta1),
                .beta2 = static_cast<float>(options.beta2),
                .one_minus_beta2 = static_cast<float>(1.0 - options.beta2),
                .inverse_sqrt_correction2 = static_cast<float>(1.0 / std::sqrt(correction2)),
                .epsilon = static_cast<float>(options.epsilon),
                .step_size = static_cast<float>(lr / correction1)};
    }

    [[gnu::always_inline]] STRATA_HOST_DEVICE static void apply(float& weight, float gradient, float* state,
                                                                const Scalars& s) noexcept {
        float& exp_avg = state[0];
        float& exp_avg_sq = state[1];
        const float penalized = gradient + s.weight_decay * weight;
        exp_avg = s.beta1 * exp_avg + s.one_minus_beta1 * penalized;
        exp_avg_sq = s.beta2 * exp_avg_sq + s.one_minus_beta2 * penalized * penalized;
        const float denominator = optim::square_root(exp_avg_sq) * s.inverse_sqrt_correction2 + s.epsilon;
        weight = weight - s.step_size * exp_avg / denominator;
    }
};

static_assert(optim::ElementwiseRule<Adam>);

}  // namespace strata
