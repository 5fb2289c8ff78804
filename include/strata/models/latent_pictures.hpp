#pragma once
// strata/models/latent_pictures.hpp - LatentPictures: what recipes of latent diffusion models have in common.

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/data/recipe.hpp>
#include <strata/models/encoder_loaders.hpp>
#include <strata/models/encoders.hpp>

namespace strata::models {

/// Tokens (B, S, E1) and (B, S, E2) as (B, S, E1 + E2).
[[nodiscard]] inline at::Tensor side_by_side(const at::Tensor& a_BSE, const at::Tensor& b_BSE) {
    return at::cat({a_BSE, b_BSE}, 2);
}

/// The half of a recipe that is about pictures: their latents, cached in the type that the autoencoder computes in.
template <AutoencoderLoader A>
class LatentPictures {
public:
    using PictureEncoders = decltype(std::declval<const A&>().load(at::kCPU));

    explicit LatentPictures(A autoencoder) : autoencoder_{std::move(autoencoder)} {}

    [[nodiscard]] std::string picture_id() const {
        return std::string{autoencoder_.id()} + ", " + c10::toString(autoencoder_.type());
    }
    [[nodiscard]] std::int64_t alignment() const { return autoencoder_.pixels_per_latent(); }
    [[nodiscard]] std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize& size) const {
        const std::int64_t pixels = autoencoder_.pixels_per_latent();
        return {{"latents",
                 autoencoder_.type(),
                 {autoencoder_.latent_channels(), size.height / pixels, size.width / pixels}}};
    }
    [[nodiscard]] PictureEncoders load_picture_encoders(at::Device device) const { return autoencoder_.load(device); }
    [[nodiscard]] std::vector<data::NamedTensors> encode_pictures(const PictureEncoders& autoencoder,
                                                                  const data::PictureBatch& pictures) const {
        const at::NoGradGuard no_gradients;
        return entries_of({{"latents", autoencoder.encode(pictures.pixels_B3HW).to(autoencoder_.type())}});
    }

private:
    A autoencoder_;
};

}  // namespace strata::models
