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
#include <strata/diffusion/flow_schedule.hpp>
#include <strata/diffusion/sampler.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/encoder_loaders.hpp>
#include <strata/models/flow_sampler.hpp>
#include <strata/models/flux_recipe.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::models {

/// The Recipe of a Flux with pretrained encoders, which are loaded where something is to be encoded and gone behind it.
///
///   A  of Flux.1: its AutoencoderKl, 16 channels, a latent for 8 x 8 pixels; latents are (mean - shift) * scale
///   T  of Flux.1: T5 v1.1 XXL, 512 tokens ([schnell]: 256) of 4096 numbers, padding included
///   C  of Flux.1: CLIP L, the vector (768) of the end of the caption, of at most 77 tokens
///
/// Everything is kept in the type that its encoder computes in: of bf16 a caption is 4 MiB, in fp32 8. A dropped
/// caption is the empty one, encoded: T5's end of text and padding, and CLIP's vector of nothing. Pictures have
/// multiples of 16 pixels.
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
        return entries_of({{"latents", autoencoder.encode(pictures.pixels_B3HW).to(autoencoder_.type())}});
    }
    [[nodiscard]] std::vector<data::NamedTensors> encode_captions(CaptionEncoders& encoders,
                                                                  std::span<const std::string> captions) const {
        const at::NoGradGuard no_gradients;
        const data::NamedTensors text = encoders.tokens.encode(captions, encoders.device);
        const data::NamedTensors whole = encoders.pooled.encode(captions, encoders.device);
        return entries_of({{"tokens", text.at("tokens").to(tokens_.type())},
                           {"mask", text.at("mask").to(at::kBool)},
                           {"pooled", whole.at("pooled").to(pooled_.type())}});
    }
    [[nodiscard]] std::optional<std::string> dropped_caption() const { return ""; }
    [[nodiscard]] FluxBatch collate(std::span<const data::Example> examples) const { return collate_flux(examples); }

    /// Latents of prompts, see train::DrawingRecipe, one after another, so that a picture has the same bits in any
    /// company: along the schedule of the model's training, shifted for this size, from noise that every prompt has of
    /// its own (PromptNoise).
    ///
    ///   model            a Flux; with a guidance embedding it is told options.guidance in one pass, and
    ///                    options.real_guidance is the strength of classifier-free guidance; without one that is
    ///                    options.guidance. Classifier-free guidance takes a doubled batch
    ///   prompts, empty   as encode_captions() made them; `empty` as negative_caption() says
    ///   first            index of prompts[0] in the whole list
    /// Returns (C, h, w) fp32 on the model's device a prompt. Collective where the model's forward pass is.
    template <class Model>
    [[nodiscard]] std::vector<at::Tensor> draw_latents(Model& model, std::span<const data::NamedTensors> prompts,
                                                       const data::NamedTensors& empty,
                                                       const pictures::PictureSize& size, const SamplerOptions& options,
                                                       std::int64_t first) const {
        const at::NoGradGuard no_gradients;
        const at::Device device = detail::device_of(model);
        const bool is_told = model.flux_options().has_guidance;
        const LatentShape shape = latent_shape(*this, size);
        const diffusion::FlowSchedule schedule{model.training_options().schedule};
        const diffusion::Sampler sampler{schedule, flow_solver(options), shape.H / patch * (shape.W / patch)};
        const Drawing drawing{sampler,
                              {.scale = is_told ? options.real_guidance : options.guidance, .rescale = options.rescale},
                              options.seed,
                              shape,
                              device};
        std::vector<at::Tensor> latents;
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            const auto told = [&](const char* name) {
                return prompts_and_empty(prompts.subspan(i, 1), empty, name, drawing.guidance).to(device);
            };
            const at::Tensor text_BTE = told("tokens");
            const at::Tensor pooled_BE = told("pooled");
            const at::Tensor mask_BT = model.training_options().masks_text ? told("mask") : at::Tensor{};
            const auto velocity = [&](const at::Tensor& x, double timestep) {
                const at::Tensor sigma_B = at::full({x.size(0)}, timestep / schedule.timesteps(), x.options());
                const at::Tensor guidance_B = is_told ? at::full_like(sigma_B, options.guidance) : at::Tensor{};
                return model.velocity(x, text_BTE, pooled_BE, sigma_B, guidance_B, mask_BT);
            };
            latents.push_back(
                models::draw_latents(drawing, first + static_cast<std::int64_t>(i), 1, velocity).select(0, 0));
        }
        return latents;
    }
    /// draw_latents(), decoded: (3, H, W) fp32 on the CPU, not clamped, a prompt. The autoencoder is in memory while it decodes.
    template <class Model>
    [[nodiscard]] std::vector<at::Tensor> draw(Model& model, std::span<const data::NamedTensors> prompts,
                                               const data::NamedTensors& empty, const pictures::PictureSize& size,
                                               const SamplerOptions& options, std::int64_t first) const {
        return decoded(*this, draw_latents(model, prompts, empty, size, options, first), detail::device_of(model));
    }

private:
    A autoencoder_;
    T tokens_;
    C pooled_;
};
static_assert(data::Recipe<Flux1Recipe<archetype::AutoencoderLoader, archetype::TokenEncoderLoader,
                                       archetype::PooledEncoderLoader>>);

}  // namespace strata::models
