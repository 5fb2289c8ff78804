#pragma once
// strata/families/pretrained_encoders.hpp - loaders of autoencoders and text encoders from the files that they were published in.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <strata/adapters/layer_names.hpp>
#include <strata/core/inline.hpp>
#include <strata/families/added_adapter.hpp>
#include <strata/families/model_folder.hpp>
#include <strata/models/encoder_loaders.hpp>
#include <strata/models/text_encoders.hpp>
#include <strata/models/trained_autoencoder.hpp>

namespace strata::families {

/// An AutoencoderKl or an AutoencoderTiny with its weights: a models::Autoencoder. Copies share the model.
class PretrainedAutoencoder {
public:
    using Of = std::variant<models::TrainedAutoencoder<models::AutoencoderKl>,
                            models::TrainedAutoencoder<models::AutoencoderTiny>>;
    PretrainedAutoencoder(std::string id, Of of) : id_{std::move(id)}, of_{std::move(of)} {}

    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    [[nodiscard]] std::int64_t latent_channels() const;
    [[nodiscard]] std::int64_t pixels_per_latent() const;
    [[nodiscard]] at::Tensor encode(const at::Tensor& images_B3HW) const;
    [[nodiscard]] at::Tensor decode(const at::Tensor& latents_Chw) const;

private:
    std::string id_;
    Of of_;
};
static_assert(models::Autoencoder<PretrainedAutoencoder>);

using AutoencoderLoader = models::DeferredAutoencoder<PretrainedAutoencoder>;
using ClipLoader = models::DeferredText<models::ClipTextEncoder>;
using T5Loader = models::DeferredText<models::T5TextEncoder>;

/// Loaders read sizes and headers at once, and samples of the values, by which they know them (weights_id()): names, shapes and types that do not fit
/// are told then. load() makes an encoder in the type that it computes in and reads its values one tensor at a time: the host's memory holds that, and
/// 1 MiB where types differ, or of an AutoencoderKl one block in fp32. It throws Errc::io_failed.
///
/// The autoencoder whose class a config.json names. Latents are the means of what pictures are encoded to; pictures above 2^20 pixels are
/// decoded in tiles.
/// Throws Errc::bad_model_config, weights_do_not_fit, and what WeightFiles throws.
[[nodiscard]] AutoencoderLoader autoencoder_loader(const ModelPart& part, at::ScalarType type);

/// A text encoder of CLIP.
///
///   sizes  of part.config: models::read_clip_text_config()
///   kept   which tensors, of which type; it computes in that
///   added  files that have adapters of this encoder, which are merged into it when it is loaded
///   name   what the encoder is called in those: text_encoder or text_encoder_2
/// Throws what ClipTokenizer and WeightFiles throw, Errc::weights_do_not_fit, and Errc::bad_model_options where sizes and tokenizer do not go
/// together. load() throws what adapters::merge_adapter_file() throws.
[[nodiscard]] ClipLoader clip_loader(const ModelPart& part, const std::filesystem::path& tokenizer,
                                     const models::ClipTextOptions& sizes, const models::ClipTextEncoderOptions& kept,
                                     const std::vector<AddedAdapter>& added = {},
                                     adapters::ModelPart name = adapters::ModelPart::text_encoder);

/// The encoder of T5, which is the second one of Flux.1.
///
///   sizes   of part.config: models::read_t5_config()
///   tokens  of a caption, padding included
///   added   as of clip_loader()
/// Throws as clip_loader().
[[nodiscard]] T5Loader t5_loader(const ModelPart& part, const std::filesystem::path& tokenizer,
                                 const models::T5Options& sizes, std::int64_t tokens, at::ScalarType type,
                                 const std::vector<AddedAdapter>& added = {});

}  // namespace strata::families

#ifndef STRATA_COMPILED
#include <strata/families/impl/pretrained_encoders.ipp>
#endif
