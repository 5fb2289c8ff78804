#pragma once
// strata/config/impl/model_settings.ipp - the keys of a model, and which families act on them.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include <strata/config/impl/key.ipp>
#include <strata/config/model_settings.hpp>
#include <strata/core/ranges.hpp>

namespace strata::config {

namespace detail {

inline constexpr std::array<std::pair<std::string_view, ModelFamily>, 4> model_families{{
    {"small", ModelFamily::small},
    {"flux", ModelFamily::flux},
    {"sdxl", ModelFamily::sdxl},
    {"sd15", ModelFamily::sd15},
}};

}  // namespace detail

STRATA_INLINE std::string_view name_of(ModelFamily family) noexcept {
    for (const auto& [name, one] : detail::model_families)
        if (one == family) return name;
    return {};
}

STRATA_INLINE std::optional<ModelFamily> model_family_of(std::string_view name) {
    std::string low{name};
    std::transform(low.begin(), low.end(), low.begin(),
                   [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
    if (low == "sd1x" || low == "sd1.5") return ModelFamily::sd15;  // SimpleTuner's name, and what people type
    for (const auto& [known, family] : detail::model_families)
        if (known == low) return family;
    return std::nullopt;
}

STRATA_INLINE std::string model_family_names() {
    std::string all;
    for (const auto& [name, family] : detail::model_families) all += (all.empty() ? "" : ", ") + std::string{name};
    return all;
}

STRATA_INLINE std::optional<ModelFamily> ModelSettings::kind() const {
    if (!family.empty()) return model_family_of(family);
    if (path.empty() && transformer.empty() && unet.empty()) return ModelFamily::small;
    return std::nullopt;
}

STRATA_INLINE const Schema<ModelSettings>& model_schema() {
    using M = ModelSettings;
    static const Schema<M> schema = [] {
        Schema<M> s;
        // Not Schema::text(), on a command line of which null is a text like any other.
        const auto word = [&](const char* key, std::string M::*member, const char* meaning) {
            s.custom(key, "text", detail::quoted(""), meaning,
                     [member](M& settings, const Value& value) { settings.*member = value.text(); });
        };
        word(
            "model_family", &M::family,
            "Which model it is: `flux`, `sdxl`, `sd15` or `small`; empty: as model_index.json says, or without files small");
        word("model_flavour", &M::flavour, "`schnell`: a Flux that was distilled to a few steps, and has no guidance");
        word("pretrained_model_name_or_path", &M::path, "Folder of the model, as it was published");
        const std::string before = ", in place of the one below `pretrained_model_name_or_path`";
        s.text("pretrained_transformer_model_name_or_path", &M::transformer,
               "Folder, or file of weights with its config.json beside it, of the transformer of flux" + before);
        s.text("pretrained_transformer_subfolder", &M::transformer_subfolder,
               "Below it, or below `pretrained_model_name_or_path`: where the transformer is; empty: `transformer`");
        s.text("pretrained_unet_model_name_or_path", &M::unet, "The same of the U-Net of sdxl and sd15" + before);
        s.text("pretrained_unet_subfolder", &M::unet_subfolder,
               "Below it, or below `pretrained_model_name_or_path`: where the U-Net is; empty: `unet`");
        s.text("pretrained_vae_model_name_or_path", &M::vae,
               "Folder of the autoencoder, an AutoencoderKL or an AutoencoderTiny" + before)
            .alias("vae_path");
        s.text("pretrained_t5_model_name_or_path", &M::t5,
               "Folder of the T5 encoder of flux, or of a model that has it as `text_encoder_2`" + before);
        s.flag("from_scratch", &M::from_scratch,
               "Begin with random numbers in the sizes of the model's config.json; encoders have their weights");
        const std::vector<Choice<EncoderFormat>> formats{
            {"bf16", EncoderFormat::bf16},
            {"fp32", EncoderFormat::fp32},
            {"default", EncoderFormat::bf16},
            {"fp16", EncoderFormat::fp32,
             "encoders compute in bf16 or fp32, because in fp16 SDXL's autoencoder overflows"}};
        s.choice<EncoderFormat>("vae_dtype", &M::vae_dtype, formats,
                                "In which format the autoencoder computes, and latents are cached");
        s.choice<EncoderFormat>("text_encoder_dtype", &M::text_encoder_dtype, formats,
                                "In which format text encoders compute, and what they make of captions is cached");
        s.integer("tokenizer_max_length", &M::tokenizer_max_length, {1, 512},
                  "Tokens of a caption in T5, of flux; null: 256 with `model_flavour` schnell, else 512");
        s.choice<PredictionType>("prediction_type", &M::prediction_type,
                                 {{"epsilon", PredictionType::epsilon},
                                  {"v_prediction", PredictionType::v_prediction},
                                  {"sample", PredictionType::sample}},
                                 "What sdxl and sd15 learn to answer; null: as scheduler_config.json says");
        s.flag("rescale_betas_zero_snr", &M::rescale_betas_zero_snr,
               "Noise levels of sdxl and sd15 whose last one has no picture left in it; null: as scheduler_config.json "
               "says");
        s.number("snr_gamma", &M::snr_gamma, {0, 1e6},
                 "Min-SNR weights of noise levels, of sdxl and sd15; 5 is usual, 0 weighs all alike");
        s.flag("offset_noise", &M::offset_noise, "Shift the noise of each channel of a picture");
        s.number("noise_offset", &M::noise_offset, {0, 10}, "How strongly, where `offset_noise` is true");
        s.number("noise_offset_probability", &M::noise_offset_probability, {0, 1},
                 "Share of pictures that have it, where `offset_noise` is true");
        s.number("input_perturbation", &M::input_perturbation, {0, 10},
                 "Show the model more noise than it is to answer, in every step; 0.1 is usual, 0 does not");
        s.number("flow_schedule_shift", &M::flow_schedule_shift, {0, 1000},
                 "Shift of the noise levels that flux is trained at: above 1 more noise; 0 and 1 shift nothing")
            .alias("flux_schedule_shift");
        s.flag("flow_schedule_auto_shift", &M::flow_schedule_auto_shift,
               "Shift them by the size of pictures instead, as drawing does")
            .alias("flux_schedule_auto_shift");
        s.number("flow_sigmoid_scale", &M::flow_sigmoid_scale, {1e-6, 1000},
                 "Noise levels of flux are sigmoid(normal * this)");
        s.flag("flow_use_uniform_schedule", &M::flow_use_uniform_schedule, "Draw noise levels of flux evenly instead");
        s.choice<FluxGuidanceMode>(
            "flux_guidance_mode", &M::flux_guidance_mode,
            {{"constant", FluxGuidanceMode::constant}, {"random-range", FluxGuidanceMode::random_range}},
            "What the guidance embedding of flux is told: `flux_guidance_value`, or a number from `flux_guidance_min` "
            "to `flux_guidance_max` for each picture");
        s.number("flux_guidance_value", &M::flux_guidance_value, {0, 1000},
                 "1 leaves the distillation of [dev] as it is, 3.5 undoes it");
        s.number("flux_guidance_min", &M::flux_guidance_min, {0, 1000}, "Of `random-range`");
        s.number("flux_guidance_max", &M::flux_guidance_max, {0, 1000}, "Of `random-range`");
        s.flag("flux_attention_masked_training", &M::flux_attention_masked_training,
               "Padding of captions is not looked at, which flux was not trained with");
        return s;
    }();
    return schema;
}

STRATA_INLINE std::vector<ModelFamily> families_with(std::string_view key) {
    using enum ModelFamily;
    const auto is_one_of = [key](std::initializer_list<std::string_view> keys) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    if (is_one_of({"model_family", "model_flavour", "pretrained_model_name_or_path"})) return {small, flux, sdxl, sd15};
    if (is_one_of({"from_scratch", "pretrained_vae_model_name_or_path", "vae_path", "vae_dtype", "text_encoder_dtype",
                   "offset_noise", "noise_offset", "noise_offset_probability", "input_perturbation"}))
        return {flux, sdxl, sd15};
    if (is_one_of({"pretrained_unet_model_name_or_path", "pretrained_unet_subfolder", "prediction_type",
                   "rescale_betas_zero_snr", "snr_gamma"}))
        return {sdxl, sd15};
    return {flux};
}

}  // namespace strata::config
