#pragma once
// strata/diffusion/loss_weights.hpp - how much the error at a noise level counts.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include <strata/diffusion/prediction.hpp>

namespace strata::diffusion {

/// Min-SNR weight (Hang et al. 2023, arXiv:2303.09556, section 3.4): the loss of x0 weighted with min(snr, gamma), as
/// the loss of what is predicted. gamma is 5 there.
///
///   epsilon  min(snr, gamma) / snr           v     min(snr, gamma) / (snr + 1)
///   sample   min(snr, gamma)                 flow  min(snr, gamma) * sigma^2 / (alpha + sigma)^2
/// Where there is no signal at all, v and sample count 0, and epsilon, of which the quotient is 0 / 0, its limit 1.
[[nodiscard]] inline double min_snr_weight(Prediction prediction, Level level, double gamma) noexcept {
    const double snr = level.snr();
    const double least = std::min(snr, gamma);
    switch (prediction) {
        case Prediction::epsilon:
            return snr > 0 ? least / snr : 1;
        case Prediction::v:
            return least / (snr + 1);
        case Prediction::sample:
            return least;
        case Prediction::flow:
            break;
    }
    const double share = level.sigma / (level.alpha + level.sigma);
    return least * share * share;
}

/// Weights of a flow's velocity by sigma (Esser et al. 2024, arXiv:2403.03206, section 3.1).
enum class FlowWeighting : std::uint8_t {
    none,        ///< 1
    sigma_sqrt,  ///< 1 / sigma^2
    cosmap,      ///< 2 / (pi (1 - 2 sigma + 2 sigma^2))
};

[[nodiscard]] constexpr double flow_weight(FlowWeighting weighting, double sigma) noexcept {
    switch (weighting) {
        case FlowWeighting::sigma_sqrt:
            return 1 / (sigma * sigma);
        case FlowWeighting::cosmap:
            return 2 / (std::numbers::pi * (1 - 2 * sigma + 2 * sigma * sigma));
        case FlowWeighting::none:
            break;
    }
    return 1;
}

}  // namespace strata::diffusion
