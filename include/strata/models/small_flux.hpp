#pragma once
// strata/models/small_flux.hpp - SmallFlux: a Flux transformer of any size with its flow-matching loss.

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/flux_blocks.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/rotary.hpp>
#include <strata/zero/unit.hpp>

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

/// Two linear layers with silu between; parameters linear_1.* and linear_2.*.
struct Embedder final : torch::nn::Module {
    Embedder(std::int64_t in, std::int64_t D);
    at::Tensor forward(const at::Tensor& x);
    torch::nn::Linear linear_1, linear_2;
};

/// Sum of the embedded timestep and the embedded pooled text; children timestep_embedder and text_embedder.
struct TimeTextEmbedding final : torch::nn::Module {
    TimeTextEmbedding(std::int64_t pooled, std::int64_t D);
    std::shared_ptr<Embedder> timestep_embedder, text_embedder;
};

/// [cos | sin] of 1000 * sigma at 128 geometric frequencies from 1 to 1/10000; (B) fp32 -> (B, 256) fp32.
at::Tensor timestep_features(const at::Tensor& sigma_B);

/// A transformer with the architecture and the parameter names of Flux.1 (without its guidance embedding), sized by
/// options. Every block is a Unit. Computes in the type of its parameters (fp32 or bf16); takes and returns fp32.
class SmallFlux : public torch::nn::Module {
public:
    using Recipe = FluxRecipe<>;  ///< without pretrained weights; a FluxRecipe of other encoders serves as well
    using Batch = Recipe::Batch;
    using Units = UnitList<JointBlock, SingleBlock>;

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

    /// The same error at noise and a sigma that follow from each picture's latents alone, whatever batch it is in: what a trainer evaluates with.
    at::Tensor evaluation_loss(const Batch& batch);

    [[nodiscard]] const SmallFluxOptions& options() const noexcept { return options_; }

private:
    /// The mean squared error of forward() at this noise, (B, C, H, W), and sigma, (B).
    at::Tensor error_at(const Batch& batch, const at::Tensor& noise_BCHW, const at::Tensor& sigma_B);

    SmallFluxOptions options_;
    torch::nn::Linear x_embedder_, context_embedder_;
    std::shared_ptr<TimeTextEmbedding> time_text_embed_;
    std::vector<std::shared_ptr<Unit<JointBlock>>> double_blocks_;
    std::vector<std::shared_ptr<Unit<SingleBlock>>> single_blocks_;
    std::shared_ptr<Modulation> norm_out_;
    torch::nn::Linear proj_out_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/small_flux.ipp>
#endif
