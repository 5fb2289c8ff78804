#pragma once
// strata/models/flux_recipe.hpp - FluxRecipe: what a transformer of Flux's shape is fed. Latents, caption tokens, a pooled caption.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <strata/core/inline.hpp>
#include <strata/data/recipe.hpp>
#include <strata/models/drawing.hpp>
#include <strata/models/encoders.hpp>
#include <strata/models/flow_sampler.hpp>
#include <strata/models/hashed_text.hpp>
#include <strata/models/linear_codec.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::models {

/// One micro-batch of pictures of one aspect bucket with their captions, encoded.
struct FluxBatch {
    at::Tensor latents_BCHW;  ///< fp32
    at::Tensor text_BTE;      ///< in the type that it is cached in; so is pooled
    at::Tensor pooled_BE;
    at::Tensor text_mask_BT;  ///< true where a token is one of the caption; undefined where the recipe caches no "mask"
    std::vector<std::string> captions;    ///< B; empty where the caption was dropped
    std::vector<std::string> samples;     ///< B paths of the pictures
    bool is_regularisation_data = false;  ///< the target is what the model predicts without its adapter
};

/// So that a trainer finds the tensors that belong on its device: zero::for_each_tensor().
template <class Batch, class Call>
requires std::same_as<std::remove_const_t<Batch>, FluxBatch>
void visit_tensors(Batch& batch, Call&& call) {
    call(batch.latents_BCHW);
    call(batch.text_BTE);
    call(batch.pooled_BE);
    call(batch.text_mask_BT);
}

/// The batch of examples whose pictures have `latents`, and whose captions `tokens`, `pooled` and, if all have one,
/// `mask`.
[[nodiscard]] FluxBatch collate_flux(std::span<const data::Example> examples);

/// A Recipe of an autoencoder and a text encoder, fp32 both; a dropped caption is the empty one, embedded.
template <Autoencoder A = LinearCodec, TextEncoder T = HashedText>
class FluxRecipe {
public:
    using Batch = FluxBatch;
    using PictureEncoders = A;
    using CaptionEncoders = T;

    /// A token of the model is a square of so many latents an edge.
    static constexpr std::int64_t patch = 2;

    /// Encoders that cost little to keep, and are copied when they are loaded; those of nothing but numbers in code
    /// have a default.
    FluxRecipe() requires(std::default_initializable<A>&& std::default_initializable<T>) = default;
    FluxRecipe(A autoencoder, T text_encoder)
        : autoencoder_{std::move(autoencoder)}, text_encoder_{std::move(text_encoder)} {}

    [[nodiscard]] std::string picture_id() const { return autoencoder_.id(); }
    [[nodiscard]] std::string caption_id() const { return text_encoder_.id(); }
    [[nodiscard]] std::int64_t alignment() const { return autoencoder_.pixels_per_latent() * patch; }

    [[nodiscard]] std::vector<data::TensorSpec> picture_tensors(const pictures::PictureSize& size) const {
        const std::int64_t pixels = autoencoder_.pixels_per_latent();
        return {{"latents", at::kFloat, {autoencoder_.latent_channels(), size.height / pixels, size.width / pixels}}};
    }
    [[nodiscard]] std::vector<data::TensorSpec> caption_tensors() const {
        constexpr std::int64_t any = data::TensorSpec::any;
        return {{"tokens", at::kFloat, {any, any}}, {"pooled", at::kFloat, {any}}};
    }

    [[nodiscard]] A load_picture_encoders(at::Device device) const { return on_device(autoencoder_, device); }
    [[nodiscard]] T load_caption_encoders(at::Device device) const { return on_device(text_encoder_, device); }
    [[nodiscard]] std::vector<data::NamedTensors> encode_pictures(const A& autoencoder,
                                                                  const data::PictureBatch& pictures) const {
        return entries_of({{"latents", autoencoder.encode(pictures.pixels_B3HW)}});
    }
    [[nodiscard]] std::vector<data::NamedTensors> encode_captions(const T& text_encoder,
                                                                  std::span<const std::string> captions) const {
        std::vector<data::NamedTensors> entries;
        for (const std::string& caption : captions) {
            const TextEmbedding embedding = text_encoder.encode(caption);
            entries.push_back({{"tokens", embedding.tokens}, {"pooled", embedding.pooled}});
        }
        return entries;
    }
    [[nodiscard]] std::optional<std::string> dropped_caption() const { return ""; }
    [[nodiscard]] FluxBatch collate(std::span<const data::Example> examples) const { return collate_flux(examples); }

    /// Latents of prompts, all together, see train::DrawingRecipe and sample_flow().
    ///
    ///   prompts, empty  as encode_captions() made them; `empty` as negative_caption() says
    ///   first           index of prompts[0] in the whole list
    /// Returns (C, h, w) fp32 on the model's device a prompt. Collective where the model's forward pass is.
    template <class Model>
    [[nodiscard]] std::vector<at::Tensor> draw_latents(Model& model, std::span<const data::NamedTensors> prompts,
                                                       const data::NamedTensors& empty,
                                                       const pictures::PictureSize& size, const SamplerOptions& options,
                                                       std::int64_t first) const {
        const auto embedding = [](const data::NamedTensors& caption) {
            return TextEmbedding{caption.at("tokens"), caption.at("pooled")};
        };
        std::vector<TextEmbedding> embedded;
        for (const data::NamedTensors& prompt : prompts) embedded.push_back(embedding(prompt));
        const auto [C, H, W] = latent_shape(*this, size);
        const at::Device device = detail::device_of(model);
        const at::Tensor latents_BCHW =
            sample_flow(model, embedded, embedding(empty), C, H, W, options, first).to(device);
        return latents_BCHW.unbind();
    }
    /// draw_latents(), decoded: (3, H, W) fp32 on the CPU, not clamped, a prompt. The autoencoder is in memory while it decodes.
    template <class Model>
    [[nodiscard]] std::vector<at::Tensor> draw(Model& model, std::span<const data::NamedTensors> prompts,
                                               const data::NamedTensors& empty, const pictures::PictureSize& size,
                                               const SamplerOptions& options, std::int64_t first) const {
        return decoded(*this, draw_latents(model, prompts, empty, size, options, first), detail::device_of(model));
    }

private:
    A autoencoder_{};
    T text_encoder_{};
};
static_assert(data::Recipe<FluxRecipe<>>);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/flux_recipe.ipp>
#endif
