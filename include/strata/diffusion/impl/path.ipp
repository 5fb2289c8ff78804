#pragma once
// strata/diffusion/impl/path.ipp - timesteps of each spacing, and the levels at them.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <strata/diffusion/impl/flow_schedule.ipp>
#include <strata/diffusion/path.hpp>

namespace strata::diffusion {

namespace detail {

inline constexpr double karras_rho = 7;

/// sigma / alpha of every timestep: the noise beside a picture of size 1, which grows from timestep to timestep.
inline std::vector<double> noise_ratios(const DdpmSchedule& schedule) {
    std::vector<double> ratios;
    for (const float product : schedule.alphas_cumprod()) {
        const double kept = std::max(static_cast<double>(product), 0x1p-24);
        ratios.push_back(std::sqrt((1 - kept) / kept));
    }
    return ratios;
}

inline Level level_of_ratio(double ratio) {
    const double alpha = 1 / std::sqrt(1 + ratio * ratio);
    return {alpha, ratio * alpha};
}

/// The ratio at a timestep, evenly between those at its neighbours.
inline double ratio_at(const std::vector<double>& ratios, double timestep) {
    const double below = std::clamp(std::floor(timestep), 0.0, static_cast<double>(ratios.size() - 1));
    const auto i = static_cast<std::size_t>(below);
    if (i + 1 == ratios.size()) return ratios[i];
    return ratios[i] + (ratios[i + 1] - ratios[i]) * (timestep - below);
}

/// The timestep at which noise has that ratio, evenly in its logarithm between two trained ones.
inline double timestep_at(const std::vector<double>& ratios, double ratio) {
    if (ratios.size() == 1) return 0;
    const auto above = std::upper_bound(ratios.begin(), ratios.end(), ratio) - ratios.begin();
    const auto low = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(above - 1, 0, static_cast<std::ptrdiff_t>(ratios.size()) - 2));
    const double from = std::log(std::max(ratios[low], 1e-10));
    const double to = std::log(std::max(ratios[low + 1], 1e-10));
    const double share = (std::log(std::max(ratio, 1e-10)) - from) / (to - from);
    return static_cast<double>(low) + std::clamp(share, 0.0, 1.0);
}

inline std::vector<double> karras_ratios(double most, double least, int n) {
    const double from = std::pow(most, 1 / karras_rho);
    const double to = std::pow(least, 1 / karras_rho);
    std::vector<double> ratios;
    for (int i = 0; i < n; ++i)
        ratios.push_back(std::pow(from + (to - from) * (n > 1 ? static_cast<double>(i) / (n - 1) : 0.0), karras_rho));
    return ratios;
}

inline bool is_multistep(Solver solver) { return solver == Solver::dpm_solver_2m || solver == Solver::unipc; }

/// n timesteps, falling. std::nearbyint rounds halves to even, as the programs do whose timesteps these are.
inline std::vector<double> spaced(int timesteps, const SolverOptions& options) {
    const int n = options.steps;
    const int extra = is_multistep(options.solver) ? 1 : 0;
    const bool whole = options.solver != Solver::euler;
    std::vector<double> result;
    for (int i = 0; i < n; ++i) {
        const int left = n - 1 - i;  // steps after this one
        switch (options.spacing) {
            case Spacing::leading:
                result.push_back(static_cast<double>(left + extra) * (timesteps / (n + extra)) + options.steps_offset);
                break;
            case Spacing::trailing:
                result.push_back(std::nearbyint(timesteps - i * (static_cast<double>(timesteps) / n)) - 1);
                break;
            case Spacing::linspace: {
                const int parts = n - 1 + extra;
                const double even = parts > 0 ? (timesteps - 1.0) * (left + extra) / parts : 0.0;
                result.push_back(whole ? std::nearbyint(even) : even);
                break;
            }
        }
    }
    return result;
}

inline void check_path(int timesteps, const SolverOptions& options) {
    config::Problems problems;
    const int extra = is_multistep(options.solver) && options.spacing != Spacing::trailing ? 1 : 0;
    if (options.steps < 1 || options.steps + extra > timesteps)
        problems.add(bad_options("a sampler is to take " + std::to_string(options.steps) +
                                     " steps through a schedule of " + std::to_string(timesteps),
                                 "give 1 to " + std::to_string(timesteps - extra) + " steps"));
    else if (options.spacing == Spacing::leading) {
        const int most = timesteps - 1 - static_cast<int>(spaced(timesteps, options).front()) + options.steps_offset;
        if (options.steps_offset < 0 || options.steps_offset > most)
            problems.add(bad_options("steps_offset is " + std::to_string(options.steps_offset) + ", and " +
                                         std::to_string(options.steps) + " steps leave room for 0 to " +
                                         std::to_string(most),
                                     "give one of these, take fewer steps, or use the spacing trailing"));
    }
    if (options.karras_sigmas && options.solver == Solver::ddim)
        problems.add(bad_options("karras_sigmas are no levels of ddim", "use euler, which takes the same steps"));
    problems.finish();
}

}  // namespace detail

STRATA_INLINE Path path_of(const DdpmSchedule& schedule, const SolverOptions& options) {
    detail::check_path(schedule.timesteps(), options);
    Path path;
    path.timesteps = detail::spaced(schedule.timesteps(), options);
    const std::vector<double> ratios = detail::noise_ratios(schedule);
    if (options.solver == Solver::ddim) {
        for (const double t : path.timesteps) path.levels.push_back(schedule.level(static_cast<std::int64_t>(t)));
    } else {
        std::vector<double> visited;
        for (const double t : path.timesteps) visited.push_back(detail::ratio_at(ratios, t));
        if (options.karras_sigmas) {
            const bool all = detail::is_multistep(options.solver);
            visited = detail::karras_ratios(all ? ratios.back() : visited.front(),
                                            all ? ratios.front() : visited.back(), options.steps);
            for (std::size_t i = 0; i < visited.size(); ++i) {
                const double timestep = detail::timestep_at(ratios, visited[i]);
                path.timesteps[i] = all ? std::nearbyint(timestep) : timestep;
            }
        }
        for (const double ratio : visited) path.levels.push_back(detail::level_of_ratio(ratio));
        // The last level of `leading` is not the noisiest, and its pictures have their signal; the others start from
        // noise alone.
        if (options.solver == Solver::euler && options.spacing != Spacing::leading) path.start = path.levels[0].sigma;
    }
    path.levels.push_back(options.last == LastLevel::clean ? Level{} : schedule.level(0));
    return path;
}

STRATA_INLINE Path path_of(const FlowSchedule& schedule, const SolverOptions& options, std::int64_t picture_tokens) {
    if (options.steps < 1)
        throw detail::bad_options("a sampler is to take " + std::to_string(options.steps) + " steps",
                                  "give 1 or more; 20 to 50 are usual");
    const int n = options.steps;
    const double first = schedule.training_sigma(0);
    const double last = schedule.training_sigma(schedule.timesteps() - 1);
    Path path;
    for (int i = 0; i < n; ++i) {
        const double even = options.flow_spacing == FlowSpacing::even
                                ? static_cast<double>(n - i) / n
                                : first + (last - first) * (n > 1 ? static_cast<double>(i) / (n - 1) : 0.0);
        const double sigma = schedule.sigma(even, picture_tokens);
        path.timesteps.push_back(sigma * schedule.timesteps());
        path.levels.push_back(FlowSchedule::level(sigma));
    }
    path.levels.push_back(FlowSchedule::level(0));
    return path;
}

}  // namespace strata::diffusion
