#pragma once
// strata/optim/adamw.hpp - AdamW: adaptive moments with decoupled weight decay.

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <strata/optim/simd.hpp>
#include <strata/optim/update_rule.hpp>

namespace strata {

/// AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2) as torch.optim.AdamW computes it:
///
///   w <- w (1 - lr weight_decay)                    decay first
///   m <- beta1 m + (1 - beta1) g
///   v <- beta2 v + (1 - beta2) g g
///   w <- w - lr / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
struct AdamW {
    struct Options {
        double beta1 = 0.9;
        double beta2 = 0.999;
        double epsilon = 1e-8;
        double weight_decay = 0.01;
    };
    static constexpr std::array<std::string_view, 2> state_names{"exp_avg", "exp_avg_sq"};

    struct Scalars {
        float decay;                        ///< 1 - lr weight_decay
        float beta1, one_minus_beta1;
        float beta2, one_minus_beta2;
        float inverse_sqrt_correction2;     ///< 1 / sqrt(1 - beta2^t)
        float epsilon;
        float step_size;                    ///< lr / (1 - beta1^t)
    };

    /// Formed in double: 1 - beta2^t would lose half its digits in fp32.
    static Scalars scalars(const Options& options, double lr, std::int64_t step) noexcept {
        const double correction1 = 1.0 - std::pow(options.beta1, static_cast<double>(step));
        const double correction2 = 1.0 - std::pow(options.beta2, static_cast<double>(step));
        return {.decay = static_cast<float>(1.0 - lr * options.weight_decay),
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
        exp_avg = s.beta1 * exp_avg + s.one_minus_beta1 * gradient;
        exp_avg_sq = s.beta2 * exp_avg_sq + s.one_minus_beta2 * gradient * gradient;
        const float denominator = optim::square_root(exp_avg_sq) * s.inverse_sqrt_correction2 + s.epsilon;
        weight = s.decay * weight - s.step_size * exp_avg / denominator;
    }
};

static_assert(optim::UpdateRule<AdamW>);

}  // namespace strata
