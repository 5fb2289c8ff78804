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

/// Tensors (B, ...) of B captions as an entry each.
[[nodiscard]] inline std::vector<data::NamedTensors> caption_entries(const data::NamedTensors& batch) {
    std::vector<data::NamedTensors> entries;
    for (const auto& [name, tensor] : batch) {
        entries.resize(static_cast<std::size_t>(tensor.size(0)));
        for (std::size_t i = 0; i < entries.size(); ++i) entries[i][name] = tensor[static_cast<std::int64_t>(i)];
    }
    return entries;
}

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
    /// The autoencoder on that device, where it has on(device); a copy of one that computes on the CPU alone.
    [[nodiscard]] A load_picture_encoders(at::Device device) const {
        if constexpr (requires {
                          { autoencoder_.on(device) } -> std::same_as<A>;
                      }) {
            return autoencoder_.on(device);
        } else {
            return autoencoder_;
        }
    }
    [[nodiscard]] std::vector<data::NamedTensors> encode_pictures(const A& autoencoder,
                                                                  const data::PictureBatch& pictures) const {
        const at::Tensor latents_BCHW = autoencoder.encode(pictures.pixels_B3HW).to(type_);
        std::vector<data::NamedTensors> entries;
        for (std::int64_t i = 0; i < latents_BCHW.size(0); ++i) entries.push_back({{"latents", latents_BCHW[i]}});
        return entries;
    }
    [[nodiscard]] const A& autoencoder() const noexcept { return autoencoder_; }

private:
    A autoencoder_;
    at::ScalarType type_;
};

}  // namespace strata::models
