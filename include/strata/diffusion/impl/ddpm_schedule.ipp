#pragma once
// strata/diffusion/impl/ddpm_schedule.ipp - tables of betas and of their products.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>

#include <strata/config/problems.hpp>
#include <strata/core/error.hpp>
#include <strata/core/option_check.hpp>
#include <strata/diffusion/ddpm_schedule.hpp>

namespace strata::diffusion {

namespace detail {

inline Error bad_options(std::string_view what, std::string_view fix) {
    return Error{Errc::bad_diffusion_options, what, fix};
}

/// n numbers in equal parts in fp32, both ends exact: from the nearer end, so that rounding is symmetric.
inline std::vector<float> evenly(float first, float last, int n) {
    const float step = n > 1 ? (last - first) / static_cast<float>(n - 1) : 0.0f;
    std::vector<float> values(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i)
        values[static_cast<std::size_t>(i)] =
            i < n / 2 || n == 1 ? first + step * static_cast<float>(i) : last - step * static_cast<float>(n - 1 - i);
    return values;
}

/// beta_i = 1 - f(i + 1) / f(i), f(i) = cos^2((i / n + 0.008) / 1.008 * pi / 2), at most 0.999
/// (Nichol & Dhariwal 2021, section 3.2).
inline std::vector<float> squared_cosine_betas(int n) {
    const auto f = [n](int i) {
        const double cosine = std::cos((static_cast<double>(i) / n + 0.008) / 1.008 * std::numbers::pi / 2);
        return cosine * cosine;
    };
    std::vector<float> betas;
    for (int i = 0; i < n; ++i) betas.push_back(static_cast<float>(std::min(1 - f(i + 1) / f(i), 0.999)));
    return betas;
}

inline std::vector<float> betas_of(const DdpmScheduleOptions& options) {
    if (!options.trained_betas.empty()) return {options.trained_betas.begin(), options.trained_betas.end()};
    const auto start = static_cast<float>(options.beta_start);
    const auto end = static_cast<float>(options.beta_end);
    if (options.shape == BetaShape::squared_cosine) return squared_cosine_betas(options.timesteps);
    if (options.shape == BetaShape::linear) return evenly(start, end, options.timesteps);
    // The ends' roots are taken of the numbers as they are written, before fp32.
    std::vector<float> betas = evenly(static_cast<float>(std::sqrt(options.beta_start)),
                                      static_cast<float>(std::sqrt(options.beta_end)), options.timesteps);
    for (float& beta : betas) beta *= beta;
    return betas;
}

/// Running products of 1 - beta, each rounded once.
inline std::vector<float> products(const std::vector<float>& betas) {
    std::vector<float> result;
    double product = 1;
    for (const float beta : betas) {
        product *= 1.0f - beta;
        result.push_back(static_cast<float>(product));
    }
    return result;
}

inline void check(const DdpmScheduleOptions& options) {
    config::Problems problems;
    const auto check_beta = [&](const std::string& name, double beta, bool may_be_1) {
        if (beta > 0 && (beta < 1 || (may_be_1 && beta == 1))) return true;
        problems.add(bad_options(name + " is " + OptionCheck::shown(beta), "give a number between 0 and 1"));
        return false;
    };
    for (std::size_t i = 0; i < options.trained_betas.size(); ++i)
        check_beta("trained_betas[" + std::to_string(i) + "]", options.trained_betas[i],
                   i + 1 == options.trained_betas.size());
    if (options.trained_betas.empty()) {
        if (options.timesteps < 1 || options.timesteps > 1'000'000)
            problems.add(bad_options("a noise schedule has " + std::to_string(options.timesteps) + " timesteps",
                                     "give 1 to 1000000; models are trained with 1000"));
        if (options.shape != BetaShape::squared_cosine) {
            const bool good = check_beta("beta_start", options.beta_start, false);
            if (check_beta("beta_end", options.beta_end, false) && good && options.beta_end < options.beta_start)
                problems.add(bad_options("beta_end is " + OptionCheck::shown(options.beta_end) +
                                             ", below beta_start, " + OptionCheck::shown(options.beta_start),
                                         "let noise grow: give beta_end at least beta_start"));
        }
    }
    problems.finish();
}

}  // namespace detail

STRATA_INLINE std::vector<float> with_zero_terminal_snr(const std::vector<float>& betas) {
    std::vector<float> roots = detail::products(betas);
    for (float& root : roots) root = std::sqrt(root);
    const float first = roots.front();
    const float last = roots.back();
    const float scale = first / (first - last);
    std::vector<float> squares;
    for (const float root : roots) squares.push_back((root - last) * scale * ((root - last) * scale));
    std::vector<float> rescaled{1.0f - squares.front()};
    for (std::size_t i = 1; i < squares.size(); ++i) rescaled.push_back(1.0f - squares[i] / squares[i - 1]);
    return rescaled;
}

STRATA_INLINE DdpmSchedule::DdpmSchedule(const DdpmScheduleOptions& options) {
    detail::check(options);
    betas_ = detail::betas_of(options);
    if (options.zero_terminal_snr) {
        if (betas_.size() < 2)
            throw detail::bad_options("one timestep cannot be both the first and one without signal",
                                      "give two timesteps or more, or leave zero_terminal_snr out");
        betas_ = with_zero_terminal_snr(betas_);
    }
    alphas_cumprod_ = detail::products(betas_);
}

STRATA_INLINE Level DdpmSchedule::level(std::int64_t timestep) const {
    if (timestep < 0 || timestep >= timesteps())
        throw detail::bad_options(
            "timestep " + std::to_string(timestep) + " is not one of a schedule with " + std::to_string(timesteps()),
            "give one from 0 to " + std::to_string(timesteps() - 1));
    const double product = alphas_cumprod_[static_cast<std::size_t>(timestep)];
    return {std::sqrt(product), std::sqrt(1 - product)};
}

}  // namespace strata::diffusion
