#pragma once
// strata/diffusion/impl/sampler.ipp - the one loop of all solvers.

#include <cstddef>
#include <sstream>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <strata/diffusion/impl/step_plan.ipp>
#include <strata/diffusion/sampler.hpp>

namespace strata::diffusion {

STRATA_INLINE Sampler::Sampler(Path path, Prediction prediction, const SolverOptions& options)
    : path_{std::move(path)}, plan_{plan_of(path_, options)}, prediction_{prediction}, clip_{options.clip} {
    if (prediction == Prediction::epsilon && path_.levels.front().alpha == 0)
        throw detail::bad_options(
            "samples are to begin without any signal, where epsilon says nothing about the picture",
            "use a model that predicts v, or a schedule without rescale_betas_zero_snr");
}

STRATA_INLINE at::Tensor Sampler::picture_in(std::size_t step, const at::Tensor& x, Denoiser model) const {
    const at::Tensor output = model(x, path_.timesteps[step]);
    if (output.sizes() != x.sizes()) {
        std::ostringstream what;
        what << "a model predicted a tensor of " << output.sizes() << " for samples of " << x.sizes();
        throw Error{Errc::bad_value, what.str(), "return one prediction for each number of the sample"};
    }
    const auto [of_sample, of_output] = picture_weights(prediction_, path_.levels[step]);
    at::Tensor picture = output.to(at::kFloat) * of_output;
    if (of_sample != 0) picture = x * of_sample + picture;
    return clip_ > 0 ? picture.clamp(-clip_, clip_) : picture;
}

STRATA_INLINE at::Tensor Sampler::draw(const at::Tensor& noise, Denoiser model, const DrawHooks& hooks) const {
    if (plan_.draws_noise() && !hooks.fresh_noise)
        throw detail::bad_options("a sampler with eta above 0 was given no source of noise",
                                  "set DrawHooks::fresh_noise, or eta to 0");
    const at::NoGradGuard no_gradients;
    return carry_out(
        plan_, noise.to(at::kFloat) * path_.start,
        [&](std::size_t i, const at::Tensor& x) { return picture_in(i, x, model); },
        [&](std::size_t i) { return hooks.fresh_noise(static_cast<int>(i)); },
        [&](std::size_t i, const at::Tensor& x, const at::Tensor& picture) {
            if (hooks.after_step) hooks.after_step(static_cast<int>(i), x, picture);
        });
}

}  // namespace strata::diffusion
