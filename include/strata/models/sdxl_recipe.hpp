#pragma once
// strata/models/sdxl_recipe.hpp - SdxlRecipe: what SDXL's U-Net is fed. Latents, tokens of two text encoders, a pooled
// caption, six numbers about size and crop (Podell et al. 2023, arXiv:2307.01952, section 2.2).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>

#include <strata/core/inline.hpp>
#include <strata/data/recipe.hpp>
#include <strata/diffusion/solver.hpp>
#include <strata/models/encoder_loaders.hpp>
#include <strata/models/latent_pictures.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/models/unet_batch.hpp>
#include <strata/models/unet_drawing.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::models {

struct SdxlRecipeOptions {
    /// A dropped caption is zeros, as SDXL was trained, and its pipelines draw without a negative prompt; false: the
    /// empty caption, encoded.
    bool dropped_is_zeros = true;
    /// How its authors draw: of the model's scheduler_config.json.
    diffusion::SolverOptions solver = {};
};

/// original height and width, top and left of the crop, target height and width, fp32: as the picture was really cut,
/// crops in pixels of the resized picture.
[[nodiscard]] at::Tensor sdxl_time_ids(const data::Geometry& geometry);

/// The batch of examples whose pictures have `latents`, and whose captions `tokens` and, of SDXL, `pooled`: with that
/// come time ids.
///
///   dropped_is_zeros  what a caption that is not to be shown is
[[nodiscard]] UnetBatch collate_unet(std::span<const data::Example> examples, bool dropped_is_zeros);

/// A Recipe of an autoencoder and two text encoders, which are loaded where something is to be encoded and gone behind
/// it. Of both, tokens are those before the last block and the final norm ("hidden_states_m2"), side by side; the second
/// gives the pooled caption, "text_embeds". Latents are kept in the type that their encoder computes in, captions in the
/// wider one of theirs.
///
///   A     of SDXL: its AutoencoderKl, 4 channels, a latent for 8 x 8 pixels
///   L, G  of SDXL: CLIP's L and OpenCLIP's bigG
template <AutoencoderLoader A, CaptionEncoderLoader L, CaptionEncoderLoader G>
class SdxlRecipe : public LatentPictures<A> {
public:
    using Batch = UnetBatch;
    struct CaptionEncoders {
        decltype(std::declval<const L&>().load(at::kCPU)) l;
        decltype(std::declval<const G&>().load(at::kCPU)) g;
        at::Device device;
    };

    SdxlRecipe(A autoencoder, L l, G g, const SdxlRecipeOptions& options = {})
        : LatentPictures<A>{std::move(autoencoder)}, l_{std::move(l)}, g_{std::move(g)}, options_{options} {}

    [[nodiscard]] std::string caption_id() const {
        return std::string{l_.id()} + " and " + std::string{g_.id()} + ", " + c10::toString(caption_type());
    }
    [[nodiscard]] std::vector<data::TensorSpec> caption_tensors() const {
        constexpr std::int64_t any = data::TensorSpec::any;
        return {{"tokens", caption_type(), {any, any}}, {"pooled", caption_type(), {any}}};
    }
    [[nodiscard]] CaptionEncoders load_caption_encoders(at::Device device) const {
        return {l_.load(device), g_.load(device), device};
    }
    [[nodiscard]] std::vector<data::NamedTensors> encode_captions(CaptionEncoders& encoders,
                                                                  std::span<const std::string> captions) const {
        const at::NoGradGuard no_gradients;
        const data::NamedTensors of_l = encoders.l.encode(captions, encoders.device);
        const data::NamedTensors of_g = encoders.g.encode(captions, encoders.device);
        const auto cached = [&](const at::Tensor& tensor) { return tensor.to(caption_type()); };
        return entries_of(
            {{"tokens", side_by_side(cached(of_l.at("hidden_states_m2")), cached(of_g.at("hidden_states_m2")))},
             {"pooled", cached(of_g.at("text_embeds"))}});
    }
    [[nodiscard]] std::optional<std::string> dropped_caption() const {
        if (options_.dropped_is_zeros) return std::nullopt;
        return "";
    }
    [[nodiscard]] UnetBatch collate(std::span<const data::Example> examples) const {
        return collate_unet(examples, options_.dropped_is_zeros);
    }
    /// Throws what draw() would throw of these options, before hours of training.
    template <class Unet>
    void check_drawing(const Unet& model, const SamplerOptions& options) const {
        static_cast<void>(unet_sampler(model, options_.solver, options));
    }
    /// Latents of prompts, see train::DrawingRecipe and draw_by_unet(). The model is told that they have their size and
    /// are not cropped.
    template <class Unet>
    [[nodiscard]] std::vector<at::Tensor> draw_latents(Unet& model, std::span<const data::NamedTensors> prompts,
                                                       const data::NamedTensors& empty,
                                                       const pictures::PictureSize& size, const SamplerOptions& options,
                                                       std::int64_t first) const {
        const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
        return draw_by_unet(*this, model, prompts, empty, size, options_.solver,
                            sdxl_time_ids({size, {size, width, height, 0, 0}}), options, first);
    }
    /// draw_latents(), decoded: (3, H, W) fp32 on the CPU, not clamped, a prompt. The autoencoder is in memory while it decodes.
    template <class Unet>
    [[nodiscard]] std::vector<at::Tensor> draw(Unet& model, std::span<const data::NamedTensors> prompts,
                                               const data::NamedTensors& empty, const pictures::PictureSize& size,
                                               const SamplerOptions& options, std::int64_t first) const {
        return decoded(*this, draw_latents(model, prompts, empty, size, options, first), detail::device_of(model));
    }
    [[nodiscard]] const SdxlRecipeOptions& options() const noexcept { return options_; }

private:
    [[nodiscard]] at::ScalarType caption_type() const { return c10::promoteTypes(l_.type(), g_.type()); }

    L l_;
    G g_;
    SdxlRecipeOptions options_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/sdxl_recipe.ipp>
#endif
