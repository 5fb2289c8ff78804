#pragma once
// strata/diffusion/prediction.hpp - Level and Prediction: how much noise is in a picture, what a model says about it.
//
// x = alpha * x0 + sigma * noise is what every process of this room has in common: x0 is the picture, noise standard
// normal. DDPM has alpha^2 + sigma^2 = 1, flow matching alpha + sigma = 1.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace strata::diffusion {

/// How much of the picture and how much noise is in x.
struct Level {
    double alpha = 1;
    double sigma = 0;

    /// Signal to noise, of powers; infinite without noise.
    [[nodiscard]] constexpr double snr() const noexcept { return (alpha / sigma) * (alpha / sigma); }
    /// lambda of Lu et al. 2022: log(alpha / sigma), half the logarithm of snr(); infinite at both ends.
    [[nodiscard]] double log_ratio() const noexcept { return std::log(alpha) - std::log(sigma); }
    friend constexpr bool operator==(const Level&, const Level&) = default;
};

/// What a model puts out, and so what it is trained towards.
enum class Prediction : std::uint8_t {
    epsilon,  ///< the noise (Ho et al. 2020, arXiv:2006.11239)
    v,        ///< alpha * noise - sigma * x0 (Salimans & Ho 2022, arXiv:2202.00512, appendix D)
    sample,   ///< the picture x0
    flow,     ///< the velocity noise - x0 (Liu et al. 2022, arXiv:2209.03003)
};

/// The name in scheduler_config.json: "epsilon", "v_prediction", "sample", "flow_prediction".
constexpr std::string_view name_of(Prediction prediction) noexcept {
    constexpr std::string_view names[] = {"epsilon", "v_prediction", "sample", "flow_prediction"};
    return names[static_cast<std::size_t>(prediction)];
}

constexpr std::optional<Prediction> prediction_of(std::string_view name) noexcept {
    for (const auto prediction : {Prediction::epsilon, Prediction::v, Prediction::sample, Prediction::flow})
        if (name_of(prediction) == name) return prediction;
    return std::nullopt;
}

/// target = of_picture * x0 + of_noise * noise.
struct TargetWeights {
    double of_picture;
    double of_noise;
};

constexpr TargetWeights target_weights(Prediction prediction, Level level) noexcept {
    switch (prediction) {
        case Prediction::epsilon:
            return {0, 1};
        case Prediction::v:
            return {-level.sigma, level.alpha};
        case Prediction::sample:
            return {1, 0};
        case Prediction::flow:
            break;
    }
    return {-1, 1};
}

/// x0 = of_sample * x + of_output * (what the model put out at x).
struct PictureWeights {
    double of_sample;
    double of_output;
};

/// The picture in a prediction: target_weights() and x = alpha x0 + sigma noise, solved for x0. Of epsilon only where
/// alpha is above 0: noise alone says nothing about the picture.
constexpr PictureWeights picture_weights(Prediction prediction, Level level) noexcept {
    if (prediction == Prediction::sample) return {0, 1};
    const auto [of_picture, of_noise] = target_weights(prediction, level);
    const double determinant = level.alpha * of_noise - level.sigma * of_picture;
    return {of_noise / determinant, -level.sigma / determinant};
}

}  // namespace strata::diffusion
