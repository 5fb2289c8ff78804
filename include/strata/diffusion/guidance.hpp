#pragma once
// strata/diffusion/guidance.hpp - classifier-free guidance: away from what no caption would give.

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>
#include <strata/diffusion/sampler.hpp>

namespace strata::diffusion {

/// How strongly a prompt is followed.
struct Guidance {
    double scale =
        1;  ///< 1 follows the prompt alone, and costs half; above, more (Ho & Salimans 2022, arXiv:2207.12598)
    double rescale = 0;  ///< 0 ... 1: share that gets back the deviation of the prompt's own (Lin et al. 2023, 3.4)

    [[nodiscard]] constexpr bool is_on() const noexcept { return scale != 1; }
};

/// empty + scale * (prompt - empty), and of that, with rescale, phi * (its deviation made the prompt's) + (1 - phi) *
/// itself. Deviations are those of each picture, over all but the first dimension.
[[nodiscard]] at::Tensor guided(const at::Tensor& prompt, const at::Tensor& empty, const Guidance& guidance);

/// One guided prediction by one call of `model` on both halves of a doubled batch, prompts first, empty captions behind
/// them; on x as it is where guidance is off.
///
///   sampler.draw(noise, [&](const at::Tensor& x, double t) { return guided_call(model, x, t, guidance); });
[[nodiscard]] at::Tensor guided_call(Denoiser model, const at::Tensor& x, double timestep, const Guidance& guidance);

}  // namespace strata::diffusion

#ifndef STRATA_COMPILED
#include <strata/diffusion/impl/guidance.ipp>
#endif
