#pragma once
// strata/diffusion/step_plan.hpp - StepPlan: a solver's steps as weights, known before a model is called.
//
// Every solver of this room is linear in the sample and in the pictures x0 that the model predicted at the last few
// levels. Written so (Lu et al. 2022 and Zhao et al. 2023 call it data prediction), a step is a handful of numbers: one
// loop serves them all, and they can be tested without tensors.

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/diffusion/path.hpp>
#include <strata/diffusion/solver.hpp>

namespace strata::diffusion {

/// of_sample * x + sum over k of of_pictures[k] * (the picture predicted k calls ago; 0 is the newest).
struct Combination {
    double of_sample = 0;
    std::vector<double> of_pictures;
};

/// From one level to the next.
struct PlannedStep {
    /// First: the sample anew, now that a picture was predicted there; of the sample at the level before. Only UniPC
    /// has it.
    std::optional<Combination> correct;
    Combination advance;     ///< the sample at the next level
    double fresh_noise = 0;  ///< times standard normal noise, added to it
};

/// A step for each of path.timesteps.
struct StepPlan {
    std::vector<PlannedStep> steps;
    std::size_t pictures = 0;  ///< the most that a combination looks back at

    [[nodiscard]] bool draws_noise() const noexcept;  ///< whether any fresh_noise is above 0
};

/// The weights of a solver's steps along a path. A step from or to a level of infinite log_ratio() (noise alone, or
/// none) is of first order, which is the limit of the others there.
/// Throws Errc::bad_diffusion_options: an order that the solver does not have, eta outside of 0 to 1, a negative clip.
[[nodiscard]] StepPlan plan_of(const Path& path, const SolverOptions& options);

namespace detail {

template <class Sample>
Sample combined(const Combination& weights, const Sample& x, const std::deque<Sample>& pictures) {
    Sample result = x * weights.of_sample;
    for (std::size_t k = 0; k < weights.of_pictures.size(); ++k) result = result + pictures[k] * weights.of_pictures[k];
    return result;
}

}  // namespace detail

/// Carries out a plan on samples of any type with + and * double.
///
///   x        the sample at the first level
///   picture  picture(i, x) is x0 as the model sees it at level i
///   noise    noise(i) is standard normal noise for step i; called only where a step wants some
///   after    after(i, x, x0) is called with the sample that step i has led to, and the picture that it was made with
template <class Sample, class Picture, class Noise, class After>
Sample carry_out(const StepPlan& plan, Sample x, Picture&& picture, Noise&& noise, After&& after) {
    std::deque<Sample> pictures;
    Sample before = x;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const PlannedStep& step = plan.steps[i];
        pictures.push_front(picture(i, x));
        if (pictures.size() > plan.pictures) pictures.pop_back();
        if (step.correct) x = detail::combined(*step.correct, before, pictures);
        before = x;
        x = detail::combined(step.advance, before, pictures);
        if (step.fresh_noise > 0) x = x + noise(i) * step.fresh_noise;
        after(i, std::as_const(x), std::as_const(pictures.front()));
    }
    return x;
}

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/step_plan.ipp>
#endif
