#pragma once
// strata/models/flux1_recipe.hpp - Flux1Recipe: what Flux.1 is fed. Latents, tokens of T5, one vector of CLIP.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/data/recipe.hpp>
#include <strata/models/encoder_loaders.hpp>
#include <strata/models/flux_recipe.hpp>

namespace strata::models {

/// The Recipe of a Flux with pretrained encoders, which are loaded where something is to be encoded and gone behind it.
///
///   A  of Flux.1: its AutoencoderKl, 16 channels, a latent for 8 x 8 pixels; latents are (mean - shift) * scale
///   T  of Flux.1: T5 v1.1 XXL, 512 tokens ([schnell]: 256) of 4096 numbers, padding included
///   C  of Flux.1: CLIP L, the vector (768) of the end of the caption, of at most 77 tokens
///
/// Everything is kept in the type that its encoder computes in: of bf16 a caption is 4 MiB, in fp32 8. A dropped caption is
/// the empty one, encoded: T5's end of text and padding, and CLIP's vector of nothing. Pictures have multiples of 16 pixels.
template <AutoencoderLoader A, TokenEncoderLoader T, PooledEncoderLoader C>
class Flux1Recipe {
public:
    using Batch = FluxBatch;
    using PictureEncoders = decltype(std::declval<const A&>().load(at::kCPU));
    struct CaptionEncoders {
        decltype(std::declval<const T&>().load(at::kCPU)) tokens;
        decltype(std::declval<const C&>().load(at::kCPU)) pooled;
        at::Device device;
    };

    /// A token of the model is a square of so many latents an edge.
    static constexpr std::int64_t patch = 2;

    Flux1Recipe(A autoencoder, T tokens, C pooled)
        : autoencoder_{std::move(autoencoder)}, tokens_{std::move(tokens)}, pooled_{std::move(pooled)} {}

    [[nodiscard]] std::string picture_id() const { return autoencoder_.id(); }
    [[nodiscard]] std::string caption_id() const {
        return std::string{tokens_.id()} + " and " + std::string{pooled_.id()};
    }
    [[nodiscard]] std::int64_t alignment() const { return autoencoder_.pixels_per_latent() * patch; }

    [[nodiscard]] std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize& size) const {
        const std::int64_t pixels = autoencoder_.pixels_per_latent();
        return {{"latents",
                 autoencoder_.type(),
                 {autoencoder_.latent_channels(), size.height / pixels, size.width / pixels}}};
    }
    [[nodiscard]] std::vector<data::TensorSpec> caption_tensors() const {
        return {{"tokens", tokens_.type(), {tokens_.tokens(), tokens_.width()}},
                {"mask", at::kBool, {tokens_.tokens()}},
                {"pooled", pooled_.type(), {pooled_.width()}}};
    }

    [[nodiscard]] PictureEncoders load_picture_encoders(at::Device device) const { return autoencoder_.load(device); }
    [[nodiscard]] CaptionEncoders load_caption_encoders(at::Device device) const {
        return {tokens_.load(device), pooled_.load(device), device};
    }

    [[nodiscard]] std::vector<data::NamedTensors> encode_pictures(const PictureEncoders& autoencoder,
                                                                  const data::PictureBatch& pictures) const {
        const at::NoGradGuard no_gradients;
        const at::Tensor latents_BCHW = autoencoder.encode(pictures.pixels_B3HW).to(autoencoder_.type());
        std::vector<data::NamedTensors> entries;
        for (std::int64_t i = 0; i < latents_BCHW.size(0); ++i) entries.push_back({{"latents", latents_BCHW[i]}});
        return entries;
    }
    [[nodiscard]] std::vector<data::NamedTensors> encode_captions(CaptionEncoders& encoders,
                                                                  std::span<const std::string> captions) const {
        const at::NoGradGuard no_gradients;
        const data::NamedTensors text = encoders.tokens.encode(captions, encoders.device);
        const data::NamedTensors whole = encoders.pooled.encode(captions, encoders.device);
        const at::Tensor tokens_BTE = text.at("tokens").to(tokens_.type());
        const at::Tensor mask_BT = text.at("mask").to(at::kBool);
        const at::Tensor pooled_BE = whole.at("pooled").to(pooled_.type());
        std::vector<data::NamedTensors> entries;
        for (std::int64_t i = 0; i < tokens_BTE.size(0); ++i)
            entries.push_back({{"tokens", tokens_BTE[i]}, {"mask", mask_BT[i]}, {"pooled", pooled_BE[i]}});
        return entries;
    }
    [[nodiscard]] std::optional<std::string> dropped_caption() const { return ""; }
    [[nodiscard]] FluxBatch collate(std::span<const data::Example> examples) const { return collate_flux(examples); }

private:
    A autoencoder_;
    T tokens_;
    C pooled_;
};
static_assert(data::Recipe<Flux1Recipe<archetype::AutoencoderLoader, archetype::TokenEncoderLoader,
                                       archetype::PooledEncoderLoader>>);

}  // namespace strata::models
