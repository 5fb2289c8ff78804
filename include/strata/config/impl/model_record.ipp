#pragma once
// strata/config/impl/model_record.ipp - settings of a model as JSON, and back by the schema that reads configurations.

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/config/impl/model_settings.ipp>
#include <strata/config/impl/value.ipp>
#include <strata/config/model_record.hpp>
#include <strata/config/value.hpp>

namespace strata::config {

namespace detail {

inline std::string absolute_text(const std::filesystem::path& path) {
    return path.empty() ? std::string{} : std::filesystem::absolute(path).lexically_normal().string();
}

inline nlohmann::ordered_json text_or_null(const std::optional<PredictionType>& type) {
    if (!type) return nullptr;
    switch (*type) {
        case PredictionType::epsilon:
            return "epsilon";
        case PredictionType::v_prediction:
            return "v_prediction";
        case PredictionType::sample:
            break;
    }
    return "sample";
}

template <class Value>
nlohmann::ordered_json value_or_null(const std::optional<Value>& value) {
    if (!value) return nullptr;
    return *value;
}

inline const char* text_of(EncoderFormat format) { return format == EncoderFormat::bf16 ? "bf16" : "fp32"; }

}  // namespace detail

STRATA_INLINE std::string model_record_text(const ModelSettings& m) {
    const nlohmann::ordered_json json{
        {"model_family", m.family},
        {"model_flavour", m.flavour},
        {"pretrained_model_name_or_path", detail::absolute_text(m.path)},
        {"pretrained_transformer_model_name_or_path", detail::absolute_text(m.transformer)},
        {"pretrained_transformer_subfolder", m.transformer_subfolder.string()},
        {"pretrained_unet_model_name_or_path", detail::absolute_text(m.unet)},
        {"pretrained_unet_subfolder", m.unet_subfolder.string()},
        {"pretrained_vae_model_name_or_path", detail::absolute_text(m.vae)},
        {"pretrained_t5_model_name_or_path", detail::absolute_text(m.t5)},
        {"from_scratch", m.from_scratch},
        {"vae_dtype", detail::text_of(m.vae_dtype)},
        {"text_encoder_dtype", detail::text_of(m.text_encoder_dtype)},
        {"tokenizer_max_length", detail::value_or_null(m.tokenizer_max_length)},
        {"prediction_type", detail::text_or_null(m.prediction_type)},
        {"rescale_betas_zero_snr", detail::value_or_null(m.rescale_betas_zero_snr)},
        {"snr_gamma", m.snr_gamma},
        {"offset_noise", m.offset_noise},
        {"noise_offset", m.noise_offset},
        {"noise_offset_probability", m.noise_offset_probability},
        {"input_perturbation", m.input_perturbation},
        {"flow_schedule_shift", m.flow_schedule_shift},
        {"flow_schedule_auto_shift", m.flow_schedule_auto_shift},
        {"flow_sigmoid_scale", m.flow_sigmoid_scale},
        {"flow_use_uniform_schedule", m.flow_use_uniform_schedule},
        {"flux_guidance_mode", m.flux_guidance_mode == FluxGuidanceMode::constant ? "constant" : "random-range"},
        {"flux_guidance_value", m.flux_guidance_value},
        {"flux_guidance_min", m.flux_guidance_min},
        {"flux_guidance_max", m.flux_guidance_max},
        {"flux_attention_masked_training", m.flux_attention_masked_training},
    };
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

STRATA_INLINE ModelSettings read_model_record(const std::filesystem::path& file) {
    const nlohmann::json json = load_json(file);
    if (!json.is_object())
        throw Error{Errc::unreadable_config, file.string() + " is no record of a model", "write {\"key\": value, ...}"};
    return model_schema().read(json, file.string(), "");
}

}  // namespace strata::config
