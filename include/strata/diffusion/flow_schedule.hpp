#pragma once
// strata/diffusion/flow_schedule.hpp - FlowSchedule: the noise levels of flow matching, and how they shift with size.

#include <cmath>
#include <cstdint>

#include <strata/core/inline.hpp>
#include <strata/diffusion/prediction.hpp>

namespace strata::diffusion {

/// How mu of a dynamic shift acts on sigma.
enum class TimeShift : std::uint8_t {
    exponential,  ///< e^mu / (e^mu + 1 / sigma - 1): a static shift of e^mu
    linear,       ///< mu / (mu + 1 / sigma - 1): a static shift of mu
};

/// The defaults are those of Flux.1-dev. With `dynamic`, `shift` is not used.
struct FlowScheduleOptions {
    int timesteps = 1000;  ///< num_train_timesteps; what models are told is sigma * timesteps
    double shift = 3.0;    ///< static: sigma -> shift * sigma / (1 + (shift - 1) * sigma) (Esser et al. 2024, eq. 23)
    bool dynamic = true;   ///< use_dynamic_shifting: the shift depends on the number of picture tokens, when drawing
    double base_shift = 0.5;  ///< mu at base_tokens
    double max_shift = 1.15;  ///< mu at max_tokens
    int base_tokens = 256;    ///< base_image_seq_len
    int max_tokens = 4096;    ///< max_image_seq_len
    TimeShift kind = TimeShift::exponential;

    friend bool operator==(const FlowScheduleOptions&, const FlowScheduleOptions&) = default;
};

/// shift * sigma / (1 + (shift - 1) * sigma), sigma in [0, 1]: more noise for a shift above 1, as large pictures need,
/// because their neighbouring pixels tell more about each other (Esser et al. 2024, arXiv:2403.03206, section 5.3.2).
[[nodiscard]] constexpr double shifted(double sigma, double shift) noexcept {
    return shift * sigma / (1 + (shift - 1) * sigma);
}

/// The same by mu; sigma 0 stays 0.
[[nodiscard]] inline double time_shifted(double sigma, double mu, TimeShift kind) noexcept {
    return shifted(sigma, kind == TimeShift::exponential ? std::exp(mu) : mu);
}

/// x = (1 - sigma) x0 + sigma noise (Liu et al. 2022; Lipman et al. 2022, arXiv:2210.02747); sigma 1 is noise alone.
class FlowSchedule {
public:
    /// Throws Errc::bad_diffusion_options: timesteps below 1, a shift that is not above 0, base_tokens not below
    /// max_tokens.
    explicit FlowSchedule(const FlowScheduleOptions& options = {});

    [[nodiscard]] const FlowScheduleOptions& options() const noexcept { return options_; }
    [[nodiscard]] int timesteps() const noexcept { return options_.timesteps; }
    [[nodiscard]] static constexpr Level level(double sigma) noexcept { return {1 - sigma, sigma}; }

    /// Entry 0 ... timesteps - 1 of the table that is trained with: (timesteps - index) / timesteps, shifted where the
    /// shift is static. Entry 0 is noise alone, and no entry is without. Rounded to fp32, as trainers have it.
    /// Throws Errc::bad_diffusion_options for an index that the table does not have.
    [[nodiscard]] double training_sigma(std::int64_t index) const;

    /// mu for pictures of that many tokens: the line through (base_tokens, base_shift) and (max_tokens, max_shift), and
    /// on beyond both. Flux.1 has a token for 16 x 16 pixels: H / 16 * W / 16.
    [[nodiscard]] double mu(std::int64_t picture_tokens) const noexcept;

    /// sigma in [0, 1] as pictures of that many tokens want it: by mu() where the shift is dynamic, else by `shift`.
    [[nodiscard]] double sigma(double unshifted, std::int64_t picture_tokens) const noexcept;

private:
    FlowScheduleOptions options_;
};

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/flow_schedule.ipp>
#endif
