#pragma once
// strata/models/trained_autoencoder.hpp - TrainedAutoencoder: an AutoencoderKl or AutoencoderTiny with weights, as recipes want one.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <strata/core/random.hpp>
#include <strata/core/text.hpp>
#include <strata/models/autoencoder_kl.hpp>
#include <strata/models/autoencoder_tiny.hpp>
#include <strata/models/encoders.hpp>

namespace strata::models {

/// What a TrainedAutoencoder does beside its model's own calls.
struct LatentOptions {
    /// Latents of a distribution: drawn from it instead of its mean. What is drawn follows from the picture alone, so
    /// that the same picture has the same latents in any batch and run.
    bool draws = false;
    /// Pictures of more pixels are decoded in tiles; none: all are decoded whole.
    std::optional<std::int64_t> most_pixels_whole{};
    TileOptions tiles;
};

/// An Autoencoder (models/encoders.hpp) of a model with weights; takes and gives fp32, records no gradient, computes
/// where and in what type the model's parameters are. Copies share the model.
///
///   Model  AutoencoderKl, AutoencoderTiny, or another with their calls
template <class Model>
class TrainedAutoencoder {
public:
    /// `weights` names them, as a hash of their file does: part of id().
    TrainedAutoencoder(std::shared_ptr<Model> model, std::string weights, const LatentOptions& options = {})
        : model_{std::move(model)}, weights_{std::move(weights)}, options_{options} {}

    [[nodiscard]] std::string id() const {
        return weights_ + (options_.draws ? "-drawn-" : "-mode-") +
               std::string{c10::toString(model_->tensor_options().dtype().toScalarType())} + '-' +
               core::shortest_text(model_->options().scaling_factor) + '-' +
               core::shortest_text(model_->options().shift_factor);
    }
    [[nodiscard]] std::int64_t latent_channels() const { return model_->latent_channels(); }
    [[nodiscard]] std::int64_t pixels_per_latent() const { return model_->pixels_per_latent(); }

    /// (B, 3, H, W), or (3, H, W), in [-1, 1] -> scaled latents (B, C, h, w), or (C, h, w), fp32 on the pictures'
    /// device.
    [[nodiscard]] at::Tensor encode(const at::Tensor& images) const {
        const torch::NoGradGuard no_gradient;
        if (images.dim() == 3) return encode(images.unsqueeze(0))[0];
        return model_->scaled(latents_of(model_->encode(images))).to(images.device());
    }
    /// Scaled latents (C, h, w), or (B, C, h, w) -> (3, H, W), or (B, 3, H, W), fp32 on the latents' device, not
    /// clamped.
    [[nodiscard]] at::Tensor decode(const at::Tensor& latents) const {
        const torch::NoGradGuard no_gradient;
        if (latents.dim() == 3) return decode(latents.unsqueeze(0))[0];
        const at::Tensor unscaled = model_->unscaled(latents);
        const std::int64_t edge = pixels_per_latent();
        const std::int64_t pixels = latents.size(2) * latents.size(3) * edge * edge;
        const at::Tensor images = options_.most_pixels_whole && pixels > *options_.most_pixels_whole
                                      ? model_->decode(unscaled, options_.tiles)
                                      : model_->decode(unscaled);
        return images.to(latents.device(), at::kFloat);
    }

    /// The same, with its model moved there; so are its copies' models, which are this one.
    [[nodiscard]] TrainedAutoencoder on(at::Device device) const {
        model_->to(device);
        return *this;
    }
    [[nodiscard]] const std::shared_ptr<Model>& model() const noexcept { return model_; }

private:
    [[nodiscard]] static at::Tensor latents_of(const at::Tensor& latents) { return latents.to(at::kFloat); }
    [[nodiscard]] at::Tensor latents_of(const LatentDistribution& encoded) const {
        const LatentDistribution wide{encoded.mean.to(at::kFloat), encoded.logvar.to(at::kFloat)};
        if (!options_.draws) return wide.mode();
        const at::Tensor means = wide.mean.cpu().contiguous();
        const at::Tensor noise = at::empty_like(means);
        for (std::int64_t i = 0; i < means.size(0); ++i) {
            const at::Tensor mean = means[i];
            const std::string_view bytes{static_cast<const char*>(mean.data_ptr()), mean.nbytes()};
            at::Generator generator = at::detail::createCPUGenerator(core::number_of(bytes));
            noise[i].normal_(0, 1, generator);
        }
        return wide.sample(noise.to(wide.mean.device()));
    }

    std::shared_ptr<Model> model_;
    std::string weights_;
    LatentOptions options_;
};
static_assert(Autoencoder<TrainedAutoencoder<AutoencoderKl>> && Autoencoder<TrainedAutoencoder<AutoencoderTiny>>);

}  // namespace strata::models
