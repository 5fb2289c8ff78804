#pragma once
// strata/models/sd15_recipe.hpp - Sd15Recipe: what SD 1.5's U-Net is fed. Latents, and the tokens of one text encoder.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/data/recipe.hpp>
#include <strata/diffusion/solver.hpp>
#include <strata/models/encoder_loaders.hpp>
#include <strata/models/latent_pictures.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/models/sdxl_recipe.hpp>
#include <strata/models/unet_batch.hpp>
#include <strata/models/unet_drawing.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::models {

struct Sd15RecipeOptions {
    /// How its authors draw: of the model's scheduler_config.json. The default is what SD 1.5's asks for, at the same
    /// timesteps: PNDM, which is not here.
    diffusion::SolverOptions solver = {.solver = diffusion::Solver::ddim, .last = diffusion::LastLevel::first};
};

/// A Recipe of an autoencoder and a text encoder, which are loaded where something is to be encoded and gone behind it.
/// Tokens are "last_hidden_state"; everything is kept in the type that its encoder computes in. A dropped caption is the
/// empty one, encoded, as SD 1.5 was trained.
///
///   A  of SD 1.5: its AutoencoderKl, 4 channels, a latent for 8 x 8 pixels
///   L  of SD 1.5: CLIP's L
template <AutoencoderLoader A, CaptionEncoderLoader L>
class Sd15Recipe : public LatentPictures<A> {
public:
    using Batch = UnetBatch;
    struct CaptionEncoders {
        decltype(std::declval<const L&>().load(at::kCPU)) l;
        at::Device device;
    };

    Sd15Recipe(A autoencoder, L l, const Sd15RecipeOptions& options = {})
        : LatentPictures<A>{std::move(autoencoder)}, l_{std::move(l)}, options_{options} {}

    [[nodiscard]] std::string caption_id() const { return std::string{l_.id()} + ", " + c10::toString(l_.type()); }
    [[nodiscard]] std::vector<data::TensorSpec> caption_tensors() const {
        return {{"tokens", l_.type(), {data::TensorSpec::any, data::TensorSpec::any}}};
    }
    [[nodiscard]] CaptionEncoders load_caption_encoders(at::Device device) const { return {l_.load(device), device}; }
    [[nodiscard]] std::vector<data::NamedTensors> encode_captions(CaptionEncoders& encoders,
                                                                  std::span<const std::string> captions) const {
        const at::NoGradGuard no_gradients;
        const data::NamedTensors encoded = encoders.l.encode(captions, encoders.device);
        return entries_of({{"tokens", encoded.at("last_hidden_state").to(l_.type())}});
    }
    [[nodiscard]] std::optional<std::string> dropped_caption() const { return ""; }
    [[nodiscard]] UnetBatch collate(std::span<const data::Example> examples) const {
        return collate_unet(examples, false);
    }
    /// Throws what draw() would throw of these options, before hours of training.
    template <class Unet>
    void check_drawing(const Unet& model, const SamplerOptions& options) const {
        static_cast<void>(unet_sampler(model, options_.solver, options));
    }
    /// Latents of prompts, see train::DrawingRecipe and draw_by_unet().
    template <class Unet>
    [[nodiscard]] std::vector<at::Tensor> draw_latents(Unet& model, std::span<const data::NamedTensors> prompts,
                                                       const data::NamedTensors& empty,
                                                       const pictures::PictureSize& size, const SamplerOptions& options,
                                                       std::int64_t first) const {
        return draw_by_unet(*this, model, prompts, empty, size, options_.solver, {}, options, first);
    }
    /// draw_latents(), decoded: (3, H, W) fp32 on the CPU, not clamped, a prompt. The autoencoder is in memory while it decodes.
    template <class Unet>
    [[nodiscard]] std::vector<at::Tensor> draw(Unet& model, std::span<const data::NamedTensors> prompts,
                                               const data::NamedTensors& empty, const pictures::PictureSize& size,
                                               const SamplerOptions& options, std::int64_t first) const {
        return decoded(*this, draw_latents(model, prompts, empty, size, options, first), detail::device_of(model));
    }

private:
    L l_;
    Sd15RecipeOptions options_;
};

}  // namespace strata::models
