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

#include <strata/core/inline.hpp>
#include <strata/data/recipe.hpp>
#include <strata/diffusion/solver.hpp>
#include <strata/models/latent_pictures.hpp>
#include <strata/models/sampler_options.hpp>
#include <strata/models/unet_batch.hpp>
#include <strata/models/unet_drawing.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::models {

struct SdxlRecipeOptions {
    /// Types that latents and tensors of captions are cached in: what the encoders compute in loses nothing.
    at::ScalarType picture_type = at::kFloat;
    at::ScalarType caption_type = at::kFloat;
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

/// A Recipe of an autoencoder and two text encoders. Of both, tokens are those before the last block and the final norm
/// ("hidden_states_m2"), side by side; the second gives the pooled caption, "text_embeds".
///
///   A     an Autoencoder, see encoders.hpp, whose copies share weights: a TrainedAutoencoder, say
///   L, G  CaptionEncoders, see latent_pictures.hpp: CLIP's L and OpenCLIP's bigG
template <Autoencoder A, NamedCaptionEncoder L, NamedCaptionEncoder G>
class SdxlRecipe : public LatentPictures<A> {
public:
    using Batch = UnetBatch;
    struct CaptionEncoders {
        L l;
        G g;
        at::Device device;
    };

    SdxlRecipe(A autoencoder, L l, G g, const SdxlRecipeOptions& options = {})
        : LatentPictures<A>{std::move(autoencoder), options.picture_type},
          l_{std::move(l)},
          g_{std::move(g)},
          options_{options} {}

    [[nodiscard]] std::string caption_id() const {
        return l_.id() + " and " + g_.id() + ", " + c10::toString(options_.caption_type);
    }
    [[nodiscard]] std::vector<data::TensorSpec> caption_tensors() const {
        constexpr std::int64_t any = data::TensorSpec::any;
        return {{"tokens", options_.caption_type, {any, any}}, {"pooled", options_.caption_type, {any}}};
    }
    [[nodiscard]] CaptionEncoders load_caption_encoders(at::Device device) const { return {l_, g_, device}; }
    [[nodiscard]] std::vector<data::NamedTensors> encode_captions(const CaptionEncoders& encoders,
                                                                  std::span<const std::string> captions) const {
        const data::NamedTensors of_l = encoders.l.encode(captions, encoders.device);
        const data::NamedTensors of_g = encoders.g.encode(captions, encoders.device);
        const auto cached = [&](const at::Tensor& tensor) { return tensor.to(options_.caption_type); };
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
    /// Pictures of prompts, see train::DrawingRecipe and draw_by_unet(). The model is told that they have their size and
    /// are not cropped.
    template <class Unet>
    [[nodiscard]] std::vector<at::Tensor> draw(Unet& model, std::span<const data::NamedTensors> prompts,
                                               const data::NamedTensors& empty, const pictures::PictureSize& size,
                                               const SamplerOptions& options, std::int64_t first) const {
        const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
        return draw_by_unet(*this, model, prompts, empty, size, options_.solver,
                            sdxl_time_ids({size, {size, width, height, 0, 0}}), options, first);
    }
    [[nodiscard]] const SdxlRecipeOptions& options() const noexcept { return options_; }

private:
    L l_;
    G g_;
    SdxlRecipeOptions options_;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/sdxl_recipe.ipp>
#endif
