#pragma once
// strata/models/autoencoder_tiny.hpp - AutoencoderTiny: the TAESD family, small stand-ins for the autoencoders of SD, SDXL, SD 3 and Flux.
//
// github.com/madebyollin/taesd. Shapes: B batch, C latent channels, H and W of a picture, h and w of latents, which
// are f times smaller. Names of parameters are those of diffusers (`encoder.layers.3.conv.0.weight`).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/models/layers.hpp>
#include <strata/models/norms.hpp>
#include <strata/models/tiled_decode.hpp>

namespace strata::models {

/// Shape of an AutoencoderTiny. The defaults are those of taesd and taesdxl.
struct AutoencoderTinyOptions {
    std::int64_t latent_channels = 4;                         ///< 16: taesd3, taef1; 32: taef2
    std::int64_t width = 64;                                  ///< channels of every block
    std::vector<std::int64_t> encoder_blocks = {1, 3, 3, 3};  ///< at each resolution, the finest first
    std::vector<std::int64_t> decoder_blocks = {3, 3, 3, 1};  ///< the coarsest first
    /// taef2: blocks at the coarsest resolution see a whole neighbourhood's statistics first, through 4 * width
    /// channels.
    bool coarse_pools = false;
    double scaling_factor = 1.0;
    double shift_factor = 0.0;
    double latent_magnitude = 3.0;  ///< of latents as pictures of 8 bits, with latent_shift
    double latent_shift = 0.5;

    /// Throws Errc::bad_model_options for sizes that do not fit together.
    void check() const;
};

/// Options of a `config.json` with `_class_name` AutoencoderTiny. Throws Errc::unreadable_config, and
/// Errc::bad_model_config with all that is wrong in it.
[[nodiscard]] AutoencoderTinyOptions read_autoencoder_tiny(const std::filesystem::path& config_json);
/// The same of a text; `source` stands for the file in messages.
[[nodiscard]] AutoencoderTinyOptions parse_autoencoder_tiny(std::string_view json, std::string source);

/// A member of the family by its name: taesd, taesdxl, taesd3, taef1 or taef2. Throws Errc::bad_value for another one.
[[nodiscard]] AutoencoderTinyOptions autoencoder_tiny_named(std::string_view name);

/// relu(conv(relu(conv(relu(conv(x))))) + x), convolutions 3x3; with a pool x is first x + pool(x). (B, C, h, w) ->
/// the same
class TinyBlock final : public torch::nn::Module {
public:
    TinyBlock(std::int64_t C, bool has_pool);
    at::Tensor forward(const at::Tensor& x_BChw);

private:
    std::shared_ptr<Conv2d> conv0_, conv2_, conv4_, pool0_, pool3_;
    std::shared_ptr<GroupNorm> pool1_;
};

/// Computes in the type of its parameters (fp32 or bf16), on their device. Latents are what the diffusion model sees:
/// this family has their scale and shift inside.
class AutoencoderTiny : public torch::nn::Module {
public:
    explicit AutoencoderTiny(const AutoencoderTinyOptions& options = {});

    /// (B, 3, H, W) in [-1, 1], H and W multiples of f -> (B, C, h, w). Throws Errc::bad_value for other sizes.
    at::Tensor encode(const at::Tensor& images_B3HW);
    /// (B, C, h, w) -> (B, 3, H, W) about [-1, 1], not clamped.
    at::Tensor decode(const at::Tensor& latents_BChw);
    /// decode() tile by tile, see tiled_decode(). docs/models.md says how much pictures differ.
    at::Tensor decode(const at::Tensor& latents_BChw, const TileOptions& tiles);

    /// Of latents for a diffusion model that wants other ones than the network's, by scaling_factor and shift_factor.
    [[nodiscard]] at::Tensor scaled(const at::Tensor& latents) const {
        return (latents - options_.shift_factor) * options_.scaling_factor;
    }
    [[nodiscard]] at::Tensor unscaled(const at::Tensor& latents) const {
        return latents / options_.scaling_factor + options_.shift_factor;
    }
    /// Latents as values in [0, 1], which a picture of 8 bits can keep, and back.
    [[nodiscard]] at::Tensor to_unit(const at::Tensor& latents) const {
        return (latents / (2.0 * options_.latent_magnitude) + options_.latent_shift).clamp(0.0, 1.0);
    }
    [[nodiscard]] at::Tensor from_unit(const at::Tensor& unit) const {
        return (unit - options_.latent_shift) * (2.0 * options_.latent_magnitude);
    }

    [[nodiscard]] const AutoencoderTinyOptions& options() const noexcept { return options_; }
    [[nodiscard]] std::int64_t latent_channels() const noexcept { return options_.latent_channels; }
    /// f, an edge of what one latent stands for.
    [[nodiscard]] std::int64_t pixels_per_latent() const noexcept {
        return std::int64_t{1} << (options_.encoder_blocks.size() - 1);
    }
    /// Type and device of the parameters.
    [[nodiscard]] at::TensorOptions tensor_options() const;

    /// The name that a weight has here, of one in upstream's own files, which hold one half each: "3.conv.0.weight" of
    /// the decoder is "decoder.layers.2.conv.0.weight", because there the first layer is the tanh. `half` is "encoder"
    /// or "decoder". Any other name comes back as it is.
    [[nodiscard]] static std::string name_of_upstream(std::string_view half, std::string_view name);

private:
    AutoencoderTinyOptions options_;
    torch::nn::Sequential encoder_, decoder_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/autoencoder_tiny.ipp>
#endif
