#pragma once
// strata/models/autoencoder_kl.hpp - AutoencoderKl: the picture autoencoder of Stable Diffusion, SDXL and Flux.
//
// Rombach et al. 2022, arXiv:2112.10752. Shapes: B batch, C latent channels, H and W of a picture, h and w of latents,
// which are f = pixels_per_latent() times smaller. Names of parameters are those of the ecosystem's files.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/autoencoder_kl_options.hpp>
#include <strata/models/kl_blocks.hpp>
#include <strata/models/tiled_decode.hpp>
#include <strata/zero/unit.hpp>

namespace strata::models {

/// The normal distribution that a picture is encoded to; all (B, C, h, w), without scale and shift.
struct LatentDistribution {
    at::Tensor mean;
    at::Tensor logvar;  ///< in [-30, 20]

    [[nodiscard]] const at::Tensor& mode() const noexcept { return mean; }
    /// mean + exp(logvar / 2) * noise, for normal noise of the same shape.
    [[nodiscard]] at::Tensor sample(const at::Tensor& noise) const { return mean + (logvar * 0.5).exp() * noise; }
};

/// Computes in the type of its parameters (fp32, or bf16 with norms and softmax in fp32), on their device. SDXL's
/// weights overflow in fp16; in bf16 they do not.
class AutoencoderKl : public torch::nn::Module {
public:
    using Units = UnitList<KlDownBlock, KlMidBlock, KlUpBlock>;

    explicit AutoencoderKl(const AutoencoderKlOptions& options = {});

    /// (B, 3, H, W) in [-1, 1], H and W multiples of f. Throws Errc::bad_value for other sizes.
    LatentDistribution encode(const at::Tensor& images_B3HW);
    /// Latents without scale and shift -> (B, 3, H, W), not clamped.
    at::Tensor decode(const at::Tensor& latents_BChw);
    /// decode() tile by tile, see tiled_decode(): what it needs beside the picture is the memory of one tile. Tiles
    /// have their own norms and attention, so that pictures differ from decode(): docs/models.md says how much.
    at::Tensor decode(const at::Tensor& latents_BChw, const TileOptions& tiles);

    /// What a diffusion model sees: (latents - shift) * scaling factor; and back.
    [[nodiscard]] at::Tensor scaled(const at::Tensor& latents) const {
        return (latents - options_.shift_factor) * options_.scaling_factor;
    }
    [[nodiscard]] at::Tensor unscaled(const at::Tensor& latents) const {
        return latents / options_.scaling_factor + options_.shift_factor;
    }

    [[nodiscard]] const AutoencoderKlOptions& options() const noexcept { return options_; }
    [[nodiscard]] std::int64_t latent_channels() const noexcept { return options_.latent_channels; }
    /// f, an edge of what one latent stands for.
    [[nodiscard]] std::int64_t pixels_per_latent() const noexcept { return pixels_per_latent_; }
    /// Type and device of the parameters.
    [[nodiscard]] at::TensorOptions tensor_options() const { return encoder_->conv_in->weight.options(); }

    /// The name that a weight has here, of one it had in files of before 2023: query, key, value and proj_attn of the
    /// attention for to_q, to_k, to_v and to_out.0. Any other name comes back as it is.
    [[nodiscard]] static std::string current_name(std::string_view name);

private:
    AutoencoderKlOptions options_;
    std::int64_t pixels_per_latent_;
    std::shared_ptr<KlEncoder> encoder_;
    std::shared_ptr<KlDecoder> decoder_;
    std::shared_ptr<Conv2d> quant_conv_, post_quant_conv_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/autoencoder_kl.ipp>
#endif
