#pragma once
// strata/models/small_flux.hpp - SmallFlux: a small Flux that learns from nothing, with its flow-matching loss.

#include <cstdint>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/flux_transformer.hpp>
#include <strata/models/rotary.hpp>

namespace strata::models {

/// Shape of a SmallFlux and the distribution of its training timesteps. The defaults, 5.2M parameters, learn some
/// hundred small pictures within minutes on two CPU cores; docs/models.md has the recipe.
struct SmallFluxOptions {
    std::int64_t latent_channels = 16;  ///< C; a token holds 2 x 2 x C values
    std::int64_t text_width = 128;      ///< E, width of text tokens and of the pooled vector
    std::int64_t heads = 3;
    RotaryAxes rotary_axes = {16, 24, 24};  ///< their sum is the width of a head, a multiple of 16
    std::int64_t double_blocks = 2;
    std::int64_t single_blocks = 4;
    /// sigma = sigmoid(normal(mean, deviation)): logit-normal timesteps. Above 0 the mean favours noisy pictures,
    /// where only the caption says what to draw.
    double timestep_mean = 0.8;
    double timestep_deviation = 1.0;
};

/// A FluxTransformer without guidance embedding that learns from nothing, sized by options. Takes and returns fp32
/// latents, not packed.
class SmallFlux : public FluxTransformer {
public:
    using Recipe = FluxRecipe<>;  ///< without pretrained weights; a FluxRecipe of other encoders serves as well
    using Batch = Recipe::Batch;

    /// A token is a square of this many latents an edge, and so H and W of the latents are its multiples.
    static constexpr std::int64_t patch = Recipe::patch;

    /// Throws Errc::bad_model_options when a head is no multiple of 16 wide or a rotary axis is odd.
    explicit SmallFlux(const SmallFluxOptions& options = {});

    /// The velocity noise - x that leads from the picture x to noise, at sigma * noise + (1 - sigma) * x.
    ///
    ///   latents  (B, C, H, W), H and W multiples of patch;  text (B, T, E);  pooled (B, E);  sigma (B) in [0, 1]
    /// Throws Errc::bad_value for an H or W that is none.
    at::Tensor forward(const at::Tensor& latents_BCHW, const at::Tensor& text_BTE, const at::Tensor& pooled_BE,
                       const at::Tensor& sigma_B);

    /// Rectified flow matching (Liu et al. 2022, arXiv:2209.03003; logit-normal sigma: Esser et al. 2024): mean squared
    /// error of forward() against noise - x. Noise and sigma come from libtorch's default CPU generator.
    at::Tensor loss(const Batch& batch);

    /// The same error at noise and a sigma that follow from each picture's latents alone, whatever batch it is in: what
    /// a trainer evaluates with.
    at::Tensor evaluation_loss(const Batch& batch);

    [[nodiscard]] const SmallFluxOptions& options() const noexcept { return options_; }

private:
    /// The mean squared error of forward() at this noise, (B, C, H, W), and sigma, (B).
    at::Tensor error_at(const Batch& batch, const at::Tensor& noise_BCHW, const at::Tensor& sigma_B);

    SmallFluxOptions options_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/small_flux.ipp>
#endif
