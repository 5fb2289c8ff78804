#pragma once
// strata/optim/adam_moments.hpp - AdamMoments: what Adam and AdamW have in common.

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <strata/core/host_device.hpp>
#include <strata/optim/square_root.hpp>

namespace strata::optim {

/// Running means of a gradient and of its square, and the step that follows from them (Kingma and Ba 2015,
/// arXiv:1412.6980, algorithm 1):
///
///   m <- beta1 m + (1 - beta1) g
///   v <- beta2 v + (1 - beta2) g g
///   step = lr / (1 - beta1^t)  m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
struct AdamMoments {
    static constexpr std::array<std::string_view, 2> state_names{"exp_avg", "exp_avg_sq"};

    struct Scalars {
        float beta1, one_minus_beta1;
        float beta2, one_minus_beta2;
        float inverse_sqrt_correction2;  ///< 1 / sqrt(1 - beta2^t)
        float epsilon;
        float step_size;  ///< lr / (1 - beta1^t)
    };

    /// Formed in double: 1 - beta2^t would lose half its digits in fp32.
    ///
    ///   options  has beta1, beta2 and epsilon
    template <class Options>
    static Scalars moment_scalars(const Options& options, double lr, std::int64_t step) noexcept {
        const double correction1 = 1.0 - std::pow(options.beta1, static_cast<double>(step));
        const double correction2 = 1.0 - std::pow(options.beta2, static_cast<double>(step));
        return {.beta1 = static_cast<float>(options.beta1),
                .one_minus_beta1 = static_cast<float>(1.0 - options.beta1),
                .beta2 = static_cast<float>(options.beta2),
                .one_minus_beta2 = static_cast<float>(1.0 - options.beta2),
                .inverse_sqrt_correction2 = static_cast<float>(1.0 / std::sqrt(correction2)),
                .epsilon = static_cast<float>(options.epsilon),
                .step_size = static_cast<float>(lr / correction1)};
    }

    /// Updates the moments and returns the step.
    [[gnu::always_inline]] STRATA_HOST_DEVICE static float step_of(float gradient, float* state,
                                                                   const Scalars& s) noexcept {
        float& exp_avg = state[0];
        float& exp_avg_sq = state[1];
        exp_avg = s.beta1 * exp_avg + s.one_minus_beta1 * gradient;
        exp_avg_sq = s.beta2 * exp_avg_sq + s.one_minus_beta2 * gradient * gradient;
        const float denominator = square_root(exp_avg_sq) * s.inverse_sqrt_correction2 + s.epsilon;
        return s.step_size * exp_avg / denominator;
    }
};

}  // namespace strata::optim
