#pragma once
// strata/models/latent_pictures.hpp - LatentPictures and NamedCaptionEncoder: what recipes of latent diffusion models have
// in common.

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

/// A CaptionEncoder, const, for recipes that know which tensors they take: ClipTextEncoder is one.
///
/// Semantic requirements (not checked by the compiler):
///   * id() names everything that the tensors depend on
///   * copies share weights
template <class E>
concept NamedCaptionEncoder = CaptionEncoder<const E> && requires(const E& encoder) {
    { encoder.id() } -> std::convertible_to<std::string>;
};

/// Tokens (B, S, E1) and (B, S, E2) as (B, S, E1 + E2).
[[nodiscard]] inline at::Tensor side_by_side(const at::Tensor& a_BSE, const at::Tensor& b_BSE) {
    return at::cat({a_BSE, b_BSE}, 2);
}

/// The half of a recipe that is about pictures: their latents, cached in a type of one's choice.
template <Autoencoder A>
class LatentPictures {
public:
    using PictureEncoders = A;

    LatentPictures(A autoencoder, at::ScalarType type) : autoencoder_{std::move(autoencoder)}, type_{type} {}

    [[nodiscard]] std::string picture_id() const { return autoencoder_.id() + ", " + c10::toString(type_); }
    [[nodiscard]] std::int64_t alignment() const { return autoencoder_.pixels_per_latent(); }
    [[nodiscard]] std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize& size) const {
        const std::int64_t pixels = autoencoder_.pixels_per_latent();
        return {{"latents", type_, {autoencoder_.latent_channels(), size.height / pixels, size.width / pixels}}};
    }
    [[nodiscard]] A load_picture_encoders(at::Device device) const { return on_device(autoencoder_, device); }
    [[nodiscard]] std::vector<data::NamedTensors> encode_pictures(const A& autoencoder,
                                                                  const data::PictureBatch& pictures) const {
        return entries_of({{"latents", autoencoder.encode(pictures.pixels_B3HW).to(type_)}});
    }
    [[nodiscard]] const A& autoencoder() const noexcept { return autoencoder_; }

private:
    A autoencoder_;
    at::ScalarType type_;
};

}  // namespace strata::models
