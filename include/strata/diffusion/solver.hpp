#pragma once
// strata/diffusion/solver.hpp - Solver: the methods that lead from noise to a picture, and their options.

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata::diffusion {

/// Methods that solve the process backwards. Each takes one call of the model a step.
enum class Solver : std::uint8_t {
    /// Straight on along what the model says: first order. The same step as ddim's, at the levels that are usual with
    /// it; for flow matching x + (sigma' - sigma) * velocity. With eta 1 it is "Euler ancestral".
    euler,
    /// Song et al. 2020, arXiv:2010.02502, eq. 12. With eta 1 it is the ancestral sampling of DDPM.
    ddim,
    /// DPM-Solver++ (2M), Lu et al. 2022, arXiv:2211.01095, algorithm 2: second order by the prediction before.
    dpm_solver_2m,
    /// UniPC, Zhao et al. 2023, arXiv:2302.04867: order 1 to 3, and each prediction also corrects the step that led to
    /// it.
    unipc,
};

/// "euler", "ddim", "dpm++2m", "unipc".
constexpr std::string_view name_of(Solver solver) noexcept {
    constexpr std::string_view names[] = {"euler", "ddim", "dpm++2m", "unipc"};
    return names[static_cast<std::size_t>(solver)];
}

constexpr std::optional<Solver> solver_of(std::string_view name) noexcept {
    for (const auto solver : {Solver::euler, Solver::ddim, Solver::dpm_solver_2m, Solver::unipc})
        if (name_of(solver) == name) return solver;
    return std::nullopt;
}

/// Which timesteps of a DdpmSchedule n steps visit (Lin et al. 2023, table 2).
enum class Spacing : std::uint8_t {
    leading,   ///< multiples of timesteps / n, and steps_offset more: the last level, the noisiest, is left out
    trailing,  ///< from the last level down in steps of timesteps / n: what zero_terminal_snr needs
    linspace,  ///< evenly from the last level to the first
};

/// How a flow's levels are spaced before they are shifted.
enum class FlowSpacing : std::uint8_t {
    even,   ///< 1, (n - 1) / n, ..., 1 / n: as pipelines of Flux.1 have it
    table,  ///< evenly from the first to the last entry of the training table, which a static shift has shifted already
};

/// Where the last step ends.
enum class LastLevel : std::uint8_t {
    clean,  ///< without noise: final_sigmas_type "zero", set_alpha_to_one
    first,  ///< at the first level of the schedule: final_sigmas_type "sigma_min", or set_alpha_to_one false
};

/// B(h) of UniPC (Zhao et al. 2023, section 3.1).
enum class UniPcB : std::uint8_t {
    bh1,  ///< h: for few steps without guidance
    bh2,  ///< e^h - 1: in general
};

/// The second-order term of DPM-Solver++ (2M).
enum class MultistepTerm : std::uint8_t {
    midpoint,  ///< half the difference of the two predictions, as the paper has it
    heun,      ///< its exact integral
};

/// How samples are drawn. What a solver does not have it ignores.
struct SolverOptions {
    Solver solver = Solver::euler;
    int steps = 30;
    double eta = 0;  ///< euler, ddim: 0 draws nothing on the way, 1 as much noise as DDPM; Song et al. 2020, eq. 16
    int order = 2;   ///< dpm_solver_2m: 1 or 2; unipc: 1 to 3
    /// unipc, and dpm_solver_2m below 15 steps: the last steps are of lower order. A step that ends without noise is of
    /// order 1 in any case.
    bool lower_order_final = true;
    bool first_order_final = false;  ///< dpm_solver_2m: so is its last step, however many there are
    UniPcB b = UniPcB::bh2;
    MultistepTerm term = MultistepTerm::midpoint;
    double clip =
        0;  ///< pictures that are predicted on the way are kept in -clip ... clip; 0 does not. For pixels, not latents

    // Levels of a DdpmSchedule.
    Spacing spacing = Spacing::leading;
    int steps_offset = 1;  ///< added to timesteps of `leading`
    /// Levels evenly spaced in (sigma / alpha)^(1/7) (Karras et al. 2022, arXiv:2206.00364, eq. 5); not of ddim.
    bool karras_sigmas = false;
    LastLevel last = LastLevel::clean;

    FlowSpacing flow_spacing = FlowSpacing::even;  ///< levels of a FlowSchedule

    friend bool operator==(const SolverOptions&, const SolverOptions&) = default;
};

}  // namespace strata::diffusion
