#pragma once
// strata/diffusion/timestep_density.hpp - TimestepDensity: which noise levels a flow is trained at, and how often.

#include <cmath>
#include <cstdint>
#include <numbers>

namespace strata::diffusion {

/// Densities over (0, 1) (Esser et al. 2024, arXiv:2403.03206, section 3.1).
enum class DensityShape : std::uint8_t {
    uniform,
    logit_normal,  ///< sigmoid(mean + deviation * z): the middle, where the velocity is hardest to guess
    mode,          ///< 1 - u - scale * (cos^2(pi u / 2) - 1 + u): a peak in the middle, and still some at both ends
    cosmap,        ///< 1 - 1 / (tan(pi u / 2) + 1): log-SNR as that of the squared cosine
};

/// A density, as a function of one random number: u uniform in [0, 1), or z normal for logit_normal.
///
/// "Sigmoid with a scale", as other trainers have it, is logit_normal with mean 0 and the scale as its deviation.
struct TimestepDensity {
    DensityShape shape = DensityShape::logit_normal;
    double mean = 0;       ///< of logit_normal
    double deviation = 1;  ///< of logit_normal, above 0
    double scale = 1.29;   ///< of mode, -1 to 2 / (pi - 2), where it is monotonic

    [[nodiscard]] constexpr bool wants_normal() const noexcept { return shape == DensityShape::logit_normal; }

    /// The number in [0, 1] that `random` stands for.
    [[nodiscard]] double at(double random) const noexcept {
        using std::numbers::pi;
        switch (shape) {
            case DensityShape::logit_normal:
                return 1 / (1 + std::exp(-(mean + deviation * random)));
            case DensityShape::mode: {
                const double cosine = std::cos(pi / 2 * random);
                return 1 - random - scale * (cosine * cosine - 1 + random);
            }
            case DensityShape::cosmap:
                return 1 - 1 / (std::tan(pi / 2 * random) + 1);
            case DensityShape::uniform:
                break;
        }
        return random;
    }
};

}  // namespace strata::diffusion
