#pragma once
// strata/diffusion/ddpm_schedule.hpp - DdpmSchedule: the noise levels that SD 1.5, SDXL and their kind are trained at.

#include <cstdint>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/diffusion/prediction.hpp>

namespace strata::diffusion {

/// How beta grows from the first level to the last.
enum class BetaShape : std::uint8_t {
    linear,          ///< evenly (Ho et al. 2020)
    scaled_linear,   ///< evenly in its square root (Rombach et al. 2022, arXiv:2112.10752)
    squared_cosine,  ///< so that alphas_cumprod is a squared cosine (Nichol & Dhariwal 2021, arXiv:2102.09672, eq. 17)
};

/// The defaults are those of SD 1.5 and SDXL.
struct DdpmScheduleOptions {
    int timesteps = 1000;  ///< num_train_timesteps
    double beta_start = 0.00085;
    double beta_end = 0.012;
    BetaShape shape = BetaShape::scaled_linear;
    /// These in place of the four above, one a timestep.
    std::vector<double> trained_betas = {};
    /// The last level has no signal left, and the first stays as it is (Lin et al. 2023, arXiv:2305.08891,
    /// algorithm 1). For v and sample only: epsilon of noise alone is the input.
    bool zero_terminal_snr = false;

    friend bool operator==(const DdpmScheduleOptions&, const DdpmScheduleOptions&) = default;
};

/// x_t = sqrt(alphas_cumprod[t]) x0 + sqrt(1 - alphas_cumprod[t]) noise (Ho et al. 2020, eq. 4) for t from 0 to
/// timesteps - 1: timestep 0 has the least noise, and there is none without.
///
/// Tables are fp32, rounded where the trainers of published models round them, to within 5e-7 of theirs.
class DdpmSchedule {
public:
    /// Throws Errc::bad_diffusion_options: timesteps below 1, a beta outside of (0, 1), or beta_end below beta_start.
    explicit DdpmSchedule(const DdpmScheduleOptions& options = {});

    [[nodiscard]] int timesteps() const noexcept { return static_cast<int>(alphas_cumprod_.size()); }
    [[nodiscard]] const std::vector<float>& betas() const noexcept { return betas_; }
    [[nodiscard]] const std::vector<float>& alphas_cumprod() const noexcept { return alphas_cumprod_; }

    /// alpha and sigma of a timestep; throws Errc::bad_diffusion_options for one that the schedule does not have.
    [[nodiscard]] Level level(std::int64_t timestep) const;

    /// True where the last level is noise alone.
    [[nodiscard]] bool ends_in_noise() const noexcept { return alphas_cumprod_.back() == 0.0f; }

private:
    std::vector<float> betas_;
    std::vector<float> alphas_cumprod_;
};

/// betas whose last alphas_cumprod is 0 (Lin et al. 2023, algorithm 1), in fp32.
[[nodiscard]] std::vector<float> with_zero_terminal_snr(const std::vector<float>& betas);

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/ddpm_schedule.ipp>
#endif
