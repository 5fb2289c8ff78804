#pragma once
// strata/diffusion/impl/step_plan.ipp - weights of DDIM, DPM-Solver++ (2M) and UniPC.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <Eigen/LU>

#include <strata/diffusion/impl/path.ipp>
#include <strata/diffusion/step_plan.hpp>

namespace strata::diffusion {

namespace detail {

/// Between two levels.
struct Leap {
    Level from, to;
    double h = to.log_ratio() - from.log_ratio();  // of log-SNR halves, above 0

    /// Orders above 1 extrapolate over h, and over none that is 0 or endless.
    [[nodiscard]] bool is_plain() const { return !std::isfinite(h) || h <= 0; }

    /// x' = (sigma' / sigma) x + (alpha' - sigma' alpha / sigma) x0: exact where x0 does not change on the way. In
    /// DPM-Solver's words the second weight is -alpha' (e^-h - 1).
    [[nodiscard]] Combination first_order(std::size_t pictures_after = 0) const {
        Combination result{to.sigma / from.sigma, std::vector<double>(pictures_after, 0.0)};
        result.of_pictures.push_back(to.alpha - to.sigma / from.sigma * from.alpha);
        return result;
    }
};

inline Leap leap(const Path& path, std::size_t i) { return {path.levels[i], path.levels[i + 1]}; }

/// Song et al. 2020, eq. 12 and 16, by sigma / alpha in place of alphas_cumprod, which are the same where
/// alpha^2 + sigma^2 = 1.
inline PlannedStep ddim_step(const Leap& leap, double eta) {
    const double shrinkage = leap.to.sigma * leap.from.alpha / (leap.from.sigma * leap.to.alpha);
    const double fresh = eta * leap.to.sigma * std::sqrt(std::max(0.0, 1 - shrinkage * shrinkage));
    const double kept = std::sqrt(std::max(0.0, leap.to.sigma * leap.to.sigma - fresh * fresh));  // of the noise in x
    return {std::nullopt, {kept / leap.from.sigma, {leap.to.alpha - kept / leap.from.sigma * leap.from.alpha}}, fresh};
}

/// Lu et al. 2022, algorithm 2: x' = first order + weight * (x0 - x0 before) / r with r = h before / h.
inline Combination dpm_step(const Leap& leap, const Leap& before, MultistepTerm term) {
    Combination result = leap.first_order();
    const double decay = std::expm1(-leap.h);
    const double weight = leap.to.alpha * (term == MultistepTerm::midpoint ? -decay / 2 : decay / leap.h + 1);
    const double slope = weight * leap.h / before.h;
    result.of_pictures[0] += slope;
    result.of_pictures.push_back(-slope);
    return result;
}

/// Zhao et al. 2023, section 3.2: the weights rho of the differences (x0 at a level - x0 at leap.from) / r, r the
/// level's distance in h, that solve sum over k of rho_k r_k^(j - 1) = b_j for j = 1 ... r.size().
inline std::vector<double> unipc_weights(const std::vector<double>& r, double h, UniPcB b) {
    const auto n = static_cast<Eigen::Index>(r.size());
    using Square = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, 3, 3>;
    using Column = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, 3, 1>;
    Square powers(n, n);
    Column right(n);
    const double bh = b == UniPcB::bh1 ? -h : std::expm1(-h);
    double phi = std::expm1(-h) / -h - 1;  // h phi_(j + 1)(-h), as it is for j = 1
    double factorial = 1;
    for (Eigen::Index j = 0; j < n; ++j) {
        for (Eigen::Index k = 0; k < n; ++k)
            powers(j, k) = std::pow(r[static_cast<std::size_t>(k)], static_cast<double>(j));
        right(j) = phi * factorial / bh;
        factorial *= static_cast<double>(j + 2);
        phi = phi / -h - 1 / factorial;
    }
    const Column rho = powers.partialPivLu().solve(right);
    return {rho.data(), rho.data() + n};
}

/// first order - alpha' B(h) sum over k of rho_k (x0_k - x0) / r_k, where x0 is the picture at leap.from, k older ones,
/// and with `corrects` also the one at leap.to, which is then the newest.
inline Combination unipc_step(const Leap& leap, std::vector<double> r, bool corrects, UniPcB b) {
    if (corrects) r.push_back(1);
    // A single difference has the weight 1/2: right to the same order as the system's solution, and what published
    // implementations take.
    const std::vector<double> rho = r.size() == 1 ? std::vector<double>{0.5} : unipc_weights(r, leap.h, b);
    const double scale = -leap.to.alpha * (b == UniPcB::bh1 ? -leap.h : std::expm1(-leap.h));
    const std::size_t start = corrects ? 1 : 0;
    Combination result = leap.first_order(start);
    for (std::size_t k = 0; k < r.size(); ++k) {
        const double weight = scale * rho[k] / r[k];
        result.of_pictures[start] -= weight;
        if (corrects && k + 1 == r.size())
            result.of_pictures[0] += weight;
        else
            result.of_pictures.push_back(weight);
    }
    return result;
}

/// How far back of level i, in parts of the step from there, each of the `count` levels before lies; below 0. Fewer
/// where one has no signal at all.
inline std::vector<double> distances(const Path& path, std::size_t i, std::size_t count) {
    std::vector<double> r;
    const double here = path.levels[i].log_ratio();
    const double h = leap(path, i).h;
    for (std::size_t k = 1; k <= count && std::isfinite(path.levels[i - k].log_ratio()); ++k)
        r.push_back((path.levels[i - k].log_ratio() - here) / h);
    return r;
}

inline std::vector<PlannedStep> unipc_plan(const Path& path, const SolverOptions& options) {
    const auto n = static_cast<std::size_t>(path.steps());
    std::vector<PlannedStep> steps(n);
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t order = std::min(static_cast<std::size_t>(options.order), i + 1);
        if (options.lower_order_final) order = std::min(order, n - i);
        const Leap step = leap(path, i);
        if (step.is_plain()) {
            steps[i].advance = step.first_order();
            continue;
        }
        const std::vector<double> r = distances(path, i, order - 1);
        steps[i].advance = r.empty() ? step.first_order() : unipc_step(step, r, false, options.b);
        if (i + 1 < n) steps[i + 1].correct = unipc_step(step, r, true, options.b);
    }
    return steps;
}

inline std::vector<PlannedStep> dpm_plan(const Path& path, const SolverOptions& options) {
    const auto n = static_cast<std::size_t>(path.steps());
    std::vector<PlannedStep> steps(n);
    for (std::size_t i = 0; i < n; ++i) {
        const Leap step = leap(path, i);
        const bool lowered = i + 1 == n && (options.first_order_final || (options.lower_order_final && n < 15));
        const bool first = options.order == 1 || i == 0 || lowered || step.is_plain() || leap(path, i - 1).is_plain();
        steps[i].advance = first ? step.first_order() : dpm_step(step, leap(path, i - 1), options.term);
    }
    return steps;
}

inline void check_solver(const SolverOptions& options) {
    config::Problems problems;
    const int most = options.solver == Solver::unipc ? 3 : options.solver == Solver::dpm_solver_2m ? 2 : 0;
    if (most > 0 && (options.order < 1 || options.order > most))
        problems.add(
            bad_options("the order of " + std::string{name_of(options.solver)} + " is " + std::to_string(options.order),
                        "give 1 to " + std::to_string(most)));
    if (most == 0 && !(options.eta >= 0 && options.eta <= 1))
        problems.add(
            bad_options("eta of " + std::string{name_of(options.solver)} + " is " + OptionCheck::shown(options.eta),
                        "give 0 (no fresh noise) to 1 (as much as DDPM)"));
    if (!(options.clip >= 0))
        problems.add(bad_options("clip of a sampler is " + OptionCheck::shown(options.clip),
                                 "give 0 for none, or the largest value of a pixel, as 1"));
    problems.finish();
}

}  // namespace detail

STRATA_INLINE bool StepPlan::draws_noise() const noexcept {
    return std::any_of(steps.begin(), steps.end(), [](const PlannedStep& step) { return step.fresh_noise > 0; });
}

STRATA_INLINE StepPlan plan_of(const Path& path, const SolverOptions& options) {
    detail::check_solver(options);
    StepPlan plan;
    if (options.solver == Solver::unipc) {
        plan.steps = detail::unipc_plan(path, options);
    } else if (options.solver == Solver::dpm_solver_2m) {
        plan.steps = detail::dpm_plan(path, options);
    } else {
        for (std::size_t i = 0; i < path.timesteps.size(); ++i)
            plan.steps.push_back(detail::ddim_step(detail::leap(path, i), options.eta));
    }
    for (const PlannedStep& step : plan.steps)
        for (const auto& weights : {step.advance, step.correct.value_or(Combination{})})
            plan.pictures = std::max(plan.pictures, weights.of_pictures.size());
    return plan;
}

}  // namespace strata::diffusion
