#pragma once
// strata/config/model_settings.hpp - ModelSettings: which model a configuration trains, where its files are, and against what it learns.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/schema.hpp>
#include <strata/core/inline.hpp>

namespace strata::config {

/// The models that strata trains by name.
enum class ModelFamily : std::uint8_t {
    small,  ///< SmallFlux: needs no files
    flux,   ///< Flux.1 [dev], [schnell] and their fine-tunes
    sdxl,   ///< Stable Diffusion XL
    sd15,   ///< Stable Diffusion 1.5 and its kind; SimpleTuner calls it sd1x
};

/// "flux"; of sd15 too, whatever the file calls it.
[[nodiscard]] std::string_view name_of(ModelFamily family) noexcept;
/// The family of that name, in letters of any case; nothing for one that strata does not train.
[[nodiscard]] std::optional<ModelFamily> model_family_of(std::string_view name);
/// "small, flux, sdxl, sd15", for messages.
[[nodiscard]] std::string model_family_names();

/// What a model with noise to learn from is asked for (`prediction_type`).
enum class PredictionType : std::uint8_t { epsilon, v_prediction, sample };

/// What the guidance embedding of Flux.1 [dev] is told while it learns.
enum class FluxGuidanceMode : std::uint8_t {
    constant,      ///< flux_guidance_value, always
    random_range,  ///< of each picture one number between flux_guidance_min and flux_guidance_max
};

/// The number format in which encoders compute, and so in which what they made is cached.
enum class EncoderFormat : std::uint8_t { bf16, fp32 };

/// A model, its files and its objective, as a trainer's configuration says them; names and meanings of keys are SimpleTuner's
/// where it has them. What a family does not use is told in the findings of the file.
struct ModelSettings {
    std::string family;   ///< `model_family`, as it is written; empty: as model_index.json says, or without files small
    std::string flavour;  ///< `model_flavour`: "dev", "schnell"; empty: not said
    std::string path;     ///< `pretrained_model_name_or_path`: a folder in the ecosystem's layout; empty: none

    /// Parts that lie elsewhere, and go before those below `path`: a folder, or a file of weights with a config.json beside it.
    /// A subfolder is below the part's own place, or below `path`.
    std::filesystem::path transformer;  ///< `pretrained_transformer_model_name_or_path`
    std::filesystem::path transformer_subfolder;
    std::filesystem::path unet;  ///< `pretrained_unet_model_name_or_path`
    std::filesystem::path unet_subfolder;
    std::filesystem::path vae;  ///< `pretrained_vae_model_name_or_path` or `vae_path`
    std::filesystem::path t5;   ///< `pretrained_t5_model_name_or_path`: text_encoder_2 of flux

    bool from_scratch = false;  ///< the denoiser begins from random numbers, in the sizes of its config.json
    EncoderFormat vae_dtype = EncoderFormat::bf16;
    EncoderFormat text_encoder_dtype = EncoderFormat::bf16;
    /// Tokens of a caption; nothing: as many as the model was trained with. Of flux T5's, which may be 1 to 512.
    std::optional<std::int64_t> tokenizer_max_length;

    // ---- sdxl and sd15 ----
    std::optional<PredictionType> prediction_type;  ///< nothing: as scheduler_config.json says
    std::optional<bool> rescale_betas_zero_snr;     ///< the same
    double snr_gamma = 0;                           ///< min-SNR weights; 0: all levels weigh alike
    // ---- and flux ----
    bool offset_noise = false;
    double noise_offset = 0.1;               ///< strength, where offset_noise is set
    double noise_offset_probability = 0.25;  ///< share of pictures that have it
    double input_perturbation = 0;

    // ---- flux ----
    double flow_schedule_shift = 0;         ///< of the levels that are trained; 0: none
    bool flow_schedule_auto_shift = false;  ///< by the size of pictures, as drawing does
    double flow_sigmoid_scale = 1;          ///< deviation of the logit-normal levels
    bool flow_use_uniform_schedule = false;
    FluxGuidanceMode flux_guidance_mode = FluxGuidanceMode::constant;
    double flux_guidance_value = 1;
    double flux_guidance_min = 0;
    double flux_guidance_max = 4;
    bool flux_attention_masked_training = false;

    /// `family` and `path` as far as the settings alone tell: nothing where model_index.json has to be asked.
    [[nodiscard]] std::optional<ModelFamily> kind() const;
};

/// The keys of ModelSettings.
[[nodiscard]] const Schema<ModelSettings>& model_schema();

/// The families that do something with a key of model_schema().
[[nodiscard]] std::vector<ModelFamily> families_with(std::string_view key);

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/model_settings.ipp>
#endif
