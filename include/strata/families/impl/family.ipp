#pragma once
// strata/families/impl/family.ipp - each family's recipe, model and objective from settings and files.

#include <cstddef>
#include <vector>

#include <strata/families/denoiser_names.hpp>
#include <strata/families/family.hpp>
#include <strata/families/impl/any_recipe.ipp>
#include <strata/families/impl/family_parts.ipp>
#include <strata/families/model_folder.hpp>
#include <strata/models/flux1_recipe.hpp>
#include <strata/models/sd15_recipe.hpp>
#include <strata/models/sdxl_recipe.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/zero/in_units.hpp>

namespace strata::families {

namespace detail {

/// A maker of `Model`s, each with the values of its files, where there are some.
template <class Model, class... Options>
std::function<std::shared_ptr<AnyModel>()> maker_of(std::optional<weights::WeightFiles> files, Options... options) {
    return [=] {
        auto model = strata::in_units([&] { return std::make_shared<Model>(options...); });
        if (files) {
            const std::vector<weights::LoadTarget> targets = weights::load_targets_of(*model);
            weights::load_into(targets, *files, denoiser_names(weights::wanted_of(targets), *files));
        }
        return std::make_shared<AnyModel>(std::move(model));
    };
}

inline Family::Parts small_family(const config::ModelSettings& settings, std::size_t added) {
    std::optional<weights::WeightFiles> files;
    if (!settings.path.empty() && !settings.from_scratch) files.emplace(settings.path);
    return {"small",
            files ? "SmallFlux of " + settings.path : std::string{"SmallFlux, the quickstart's model"},
            any_recipe<models::SmallFlux>(models::FluxRecipe<>{}),
            maker_of<models::SmallFlux>(std::move(files), models::SmallFluxOptions{}),
            {},
            std::vector<std::size_t>(added)};
}

inline Family::Parts flux_family(const config::ModelSettings& settings, FamilyFiles& files) {
    const auto options = files.read<models::FluxOptions>(
        files.folder.denoiser, [](const std::filesystem::path& config) { return models::read_flux_config(config); });
    const auto clip_sizes = files.clip_sizes(files.folder.text_encoder);
    const auto t5_sizes = files.read<models::T5Options>(
        files.folder.text_encoder_2,
        [](const std::filesystem::path& config) { return models::read_t5_config(config); });
    const bool is_short =
        settings.flavour == "schnell" || (settings.flavour.empty() && options && !options->has_guidance);
    const std::int64_t tokens = settings.tokenizer_max_length.value_or(is_short ? 256 : 512);
    const auto autoencoder = files.autoencoder();
    const auto t5 = files.t5(t5_sizes, tokens);
    const auto clip = files.clip(adapters::ModelPart::text_encoder, files.folder.tokenizer, clip_sizes,
                                 {.last_hidden_state = false, .pooled = true});
    const auto weights = files.denoiser_weights<models::FluxTransformer>(options);
    const models::FluxTraining training = flux_training(settings, files.scheduler(true));
    if (options && autoencoder)
        files.must_agree(files.folder.denoiser, "in_channels", options->token_values, "4 times the latent channels of",
                         files.folder.vae, 4 * autoencoder->latent_channels());
    if (options && t5_sizes)
        files.must_agree(files.folder.denoiser, "joint_attention_dim", options->text_width, "the width of",
                         files.folder.text_encoder_2, t5_sizes->width);
    if (options && clip_sizes)
        files.must_agree(files.folder.denoiser, "pooled_projection_dim", options->pooled_width, "the width of",
                         files.folder.text_encoder, clip_sizes->width);
    files.finish();
    return {"flux",
            "Flux.1 of " + files.title(),
            any_recipe<models::Flux>(
                models::Flux1Recipe<AutoencoderLoader, T5Loader, ClipLoader>{*autoencoder, *t5, *clip}),
            maker_of<models::Flux>(weights, *options, training),
            files.scheduler(true),
            files.layers_of_encoders};
}

inline Family::Parts sdxl_family(const config::ModelSettings& settings, FamilyFiles& files) {
    const auto options = files.unet(true);
    const auto l_sizes = files.clip_sizes(files.folder.text_encoder);
    const auto g_sizes = files.clip_sizes(files.folder.text_encoder_2);
    const auto autoencoder = files.autoencoder();
    const auto l = files.clip(adapters::ModelPart::text_encoder, files.folder.tokenizer, l_sizes,
                              {.last_hidden_state = false, .hidden_states_m2 = true});
    const auto g = files.clip(adapters::ModelPart::text_encoder_2, files.folder.tokenizer_2, g_sizes,
                              {.last_hidden_state = false, .hidden_states_m2 = true, .text_embeds = true});
    const auto weights = files.denoiser_weights<models::Unet>(options);
    if (options && autoencoder)
        files.must_agree(files.folder.denoiser, "in_channels", options->in_channels, "the latent channels of",
                         files.folder.vae, autoencoder->latent_channels());
    if (options && l_sizes && g_sizes) {
        files.must_agree(files.folder.denoiser, "cross_attention_dim", options->cross_attention_dim,
                         "the widths of both text encoders, of which the second is", files.folder.text_encoder_2,
                         l_sizes->width + g_sizes->width);
        files.must_agree(files.folder.denoiser, "the width of the pooled caption", options->pooled_dim(),
                         "the projection_dim of", files.folder.text_encoder_2, g_sizes->projection_width);
    }
    const auto scheduler = files.scheduler(false);
    files.finish();
    models::SdxlRecipeOptions recipe;
    if (scheduler) recipe.solver = scheduler->solver;
    recipe.dropped_is_zeros = files.folder.zeros_for_empty_prompt;
    return {"sdxl",
            "SDXL of " + files.title(),
            any_recipe<models::SdxlUnet>(
                models::SdxlRecipe<AutoencoderLoader, ClipLoader, ClipLoader>{*autoencoder, *l, *g, recipe}),
            maker_of<models::SdxlUnet>(weights, *options, ddpm_objective(settings, scheduler)),
            scheduler,
            files.layers_of_encoders};
}

inline Family::Parts sd15_family(const config::ModelSettings& settings, FamilyFiles& files) {
    const auto options = files.unet(false);
    const auto l_sizes = files.clip_sizes(files.folder.text_encoder);
    const auto autoencoder = files.autoencoder();
    const auto l = files.clip(adapters::ModelPart::text_encoder, files.folder.tokenizer, l_sizes, {});
    const auto weights = files.denoiser_weights<models::Unet>(options);
    if (options && autoencoder)
        files.must_agree(files.folder.denoiser, "in_channels", options->in_channels, "the latent channels of",
                         files.folder.vae, autoencoder->latent_channels());
    if (options && l_sizes)
        files.must_agree(files.folder.denoiser, "cross_attention_dim", options->cross_attention_dim, "the width of",
                         files.folder.text_encoder, l_sizes->width);
    const auto scheduler = files.scheduler(false);
    files.finish();
    models::Sd15RecipeOptions recipe;
    if (scheduler) recipe.solver = scheduler->solver;
    return {"sd15",
            "Stable Diffusion 1.5 of " + files.title(),
            any_recipe<models::Sd15Unet>(models::Sd15Recipe<AutoencoderLoader, ClipLoader>{*autoencoder, *l, recipe}),
            maker_of<models::Sd15Unet>(weights, *options, ddpm_objective(settings, scheduler)),
            scheduler,
            files.layers_of_encoders};
}

}  // namespace detail

STRATA_INLINE std::string Family::stand_in_note() const {
    if (!parts_.scheduler || parts_.scheduler->not_here.empty()) return {};
    return "scheduler_config.json names " + parts_.scheduler->not_here +
           ", which strata does not draw with: " + std::string{diffusion::name_of(parts_.scheduler->solver.solver)} +
           " stands in for it";
}

STRATA_INLINE std::unique_ptr<Family> make_family(const config::ModelSettings& settings,
                                                  const std::vector<AddedAdapter>& added) {
    using config::ModelFamily;
    if (!settings.family.empty() && !settings.kind())
        throw Error{Errc::bad_value, "'model_family' is " + settings.family + ", which strata does not train",
                    "use one of " + config::model_family_names()};
    if (settings.kind() == ModelFamily::small)
        return std::make_unique<Family>(detail::small_family(settings, added.size()));
    detail::FamilyFiles files{settings, added};
    switch (files.folder.family) {
        case ModelFamily::flux:
            return std::make_unique<Family>(detail::flux_family(settings, files));
        case ModelFamily::sdxl:
            return std::make_unique<Family>(detail::sdxl_family(settings, files));
        default:
            return std::make_unique<Family>(detail::sd15_family(settings, files));
    }
}

}  // namespace strata::families
