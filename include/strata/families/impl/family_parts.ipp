#pragma once
// strata/families/impl/family_parts.ipp - what families read of their files, with all that is wrong collected.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <strata/adapters/adapter_match.hpp>
#include <strata/adapters/merge_adapter_file.hpp>
#include <strata/config/document.hpp>
#include <strata/core/error.hpp>
#include <strata/diffusion/objective.hpp>
#include <strata/diffusion/scheduler_config.hpp>
#include <strata/families/denoiser_names.hpp>
#include <strata/families/family.hpp>
#include <strata/families/impl/model_folder.ipp>
#include <strata/families/impl/pretrained_encoders.ipp>
#include <strata/families/model_folder.hpp>
#include <strata/families/pretrained_encoders.hpp>
#include <strata/models/unet_options.hpp>
#include <strata/weights/load_weights.hpp>
#include <strata/weights/weight_match.hpp>

namespace strata::families::detail {

inline at::ScalarType type_of(config::EncoderFormat format) {
    return format == config::EncoderFormat::fp32 ? at::kFloat : at::kBFloat16;
}

/// The files of one family. Getters give nothing where something is wrong, which finish() tells.
class FamilyFiles {
public:
    FamilyFiles(const config::ModelSettings& settings, const std::vector<AddedAdapter>& added)
        : folder{find_model_parts(settings, problems_)},
          layers_of_encoders(added.size()),
          settings_{settings},
          added_{added} {
        // Nothing else is worth telling where not even the family is known.
        if (folder.family == config::ModelFamily::small) finish();
    }
    void finish() const { problems_.finish("the model " + title()); }

    [[nodiscard]] std::string title() const {
        if (!settings_.path.empty()) return settings_.path;
        return (settings_.transformer.empty() ? settings_.unet : settings_.transformer).string();
    }

    /// Of a config.json that is there.
    template <class Options, class Read>
    [[nodiscard]] std::optional<Options> read(const ModelPart& part, const Read& read) {
        std::optional<Options> options;
        if (part) problems_.during([&] { options = read(part.config); });
        return options;
    }
    [[nodiscard]] std::optional<models::ClipTextOptions> clip_sizes(const ModelPart& part) {
        return read<models::ClipTextOptions>(part, [&](const std::filesystem::path& config) {
            models::ClipTextOptions sizes = models::read_clip_text_config(config);
            // Of a file that does not name its class, the weights say whether there is a projection.
            const config::Document document = config::load_document(config);
            const config::Node* const said = document.root.find("architectures");
            if (said == nullptr || said->is(config::NodeKind::null))
                sizes.has_projection = weights::WeightFiles{part.weights}.find("text_projection.weight") != nullptr;
            return sizes;
        });
    }
    [[nodiscard]] std::optional<models::UnetOptions> unet(bool has_addition) {
        const auto options = read<models::UnetOptions>(
            folder.denoiser, [](const std::filesystem::path& config) { return models::load_unet_options(config); });
        if (options && (options->addition_time_dim > 0) != has_addition)
            problems_.add(folder.denoiser.config.string() + " is of a U-Net " +
                          (has_addition ? "without time ids and a pooled caption: that is sd15's"
                                        : "with time ids and a pooled caption: that is sdxl's"));
        return options;
    }

    [[nodiscard]] std::optional<AutoencoderLoader> autoencoder() {
        std::optional<AutoencoderLoader> loader;
        if (folder.vae)
            problems_.during([&] { loader.emplace(autoencoder_loader(folder.vae, type_of(settings_.vae_dtype))); });
        return loader;
    }
    [[nodiscard]] std::optional<ClipLoader> clip(adapters::ModelPart name, const std::filesystem::path& tokenizer,
                                                 const std::optional<models::ClipTextOptions>& sizes,
                                                 models::ClipTextEncoderOptions kept) {
        std::optional<ClipLoader> loader;
        if (!sizes || tokenizer.empty()) return loader;
        const ModelPart& part = name == adapters::ModelPart::text_encoder ? folder.text_encoder : folder.text_encoder_2;
        if (kept.text_embeds && !sizes->has_projection) {
            problems_.add(part.config.string() +
                          " is of a CLIPTextModel, and SDXL's second text encoder is a "
                          "CLIPTextModelWithProjection");
            return loader;
        }
        kept.type = type_of(settings_.text_encoder_dtype);
        const auto added = added_to(name, [&] { return std::make_shared<models::ClipText>(*sizes); });
        problems_.during([&] { loader.emplace(clip_loader(part, tokenizer, *sizes, kept, added, name)); });
        return loader;
    }
    [[nodiscard]] std::optional<T5Loader> t5(const std::optional<models::T5Options>& sizes, std::int64_t tokens) {
        std::optional<T5Loader> loader;
        if (!sizes || folder.tokenizer_2.empty()) return loader;
        const auto added =
            added_to(adapters::ModelPart::text_encoder_2, [&] { return std::make_shared<models::T5Encoder>(*sizes); });
        problems_.during([&] {
            loader.emplace(t5_loader(folder.text_encoder_2, folder.tokenizer_2, *sizes, tokens,
                                     type_of(settings_.text_encoder_dtype), added));
        });
        return loader;
    }
    /// Nothing from scratch. What does not fit a Model of these options is a problem.
    template <class Model, class Options>
    [[nodiscard]] std::optional<weights::WeightFiles> denoiser_weights(const std::optional<Options>& options) {
        std::optional<weights::WeightFiles> files;
        if (!folder.denoiser || settings_.from_scratch) return files;
        problems_.during([&] {
            files.emplace(folder.denoiser.weights);
            if (!options) return;
            const auto wanted = weights::wanted_weights([&] { return std::make_shared<Model>(*options); });
            static_cast<void>(weights::match_weights(wanted, *files, denoiser_names(wanted, *files)));
        });
        return files;
    }
    /// Nothing where there is none; one of the other process is a problem.
    [[nodiscard]] std::optional<diffusion::SchedulerConfig> scheduler(bool is_flow) {
        std::optional<diffusion::SchedulerConfig> scheduler;
        if (folder.scheduler.empty()) return scheduler;
        problems_.during([&] { scheduler = diffusion::load_scheduler_config(folder.scheduler); });
        if (!scheduler || scheduler->is_flow() == is_flow) return scheduler;
        problems_.add(folder.scheduler.string() + (is_flow ? " is of no flow, and flux is trained by flow matching"
                                                           : " is of a flow, and this model answers with noise or v"));
        return std::nullopt;
    }

    /// A size in one file that follows from another.
    void must_agree(const ModelPart& part, const std::string& what, std::int64_t value, const std::string& relation,
                    const ModelPart& other, std::int64_t expected) {
        if (value == expected) return;
        problems_.add(part.config.string() + " has " + std::to_string(value) + " as " + what + ", and " + relation +
                      " " + other.config.string() + " is " + std::to_string(expected));
    }

private:
    FolderProblems problems_;

public:
    ModelFolder folder;
    std::vector<std::size_t> layers_of_encoders;  ///< that each of the added files has adapters of

private:
    /// The added files that have adapters of an encoder. Throws what is wrong in them, which is no problem of the model's folder.
    template <class Make>
    [[nodiscard]] std::vector<AddedAdapter> added_to(adapters::ModelPart name, const Make& make) {
        std::vector<AddedAdapter> found;
        for (std::size_t i = 0; i < added_.size(); ++i) {
            const adapters::AdapterMatch match = adapters::match_adapter(
                std::make_shared<const adapters::AdapterFile>(added_[i].file),
                adapters::named_layers(weights::wanted_weights(make)), {.part = name, .may_have_nothing = true});
            if (match.adapters.empty()) continue;
            found.push_back(added_[i]);
            layers_of_encoders[i] += match.adapters.size();
        }
        return found;
    }

    const config::ModelSettings& settings_;
    const std::vector<AddedAdapter>& added_;
};

inline diffusion::NoiseOptions noise_of(const config::ModelSettings& settings) {
    return {.offset = settings.offset_noise ? settings.noise_offset : 0,
            .offset_probability = settings.noise_offset_probability,
            .perturbation = settings.input_perturbation};
}

inline models::FluxTraining flux_training(const config::ModelSettings& settings,
                                          const std::optional<diffusion::SchedulerConfig>& scheduler) {
    models::FluxTraining training;
    if (scheduler) training.schedule = std::get<diffusion::FlowScheduleOptions>(scheduler->schedule);
    diffusion::FlowObjectiveOptions& flow = training.flow;
    // The keys say what sigma is, without a table between them and it.
    flow.from_table = false;
    if (settings.flow_use_uniform_schedule)
        flow.density.shape = diffusion::DensityShape::uniform;
    else
        flow.density = {.mean = 0, .deviation = settings.flow_sigmoid_scale};
    flow.shift_by_tokens = settings.flow_schedule_auto_shift;
    if (!flow.shift_by_tokens && settings.flow_schedule_shift > 0) flow.shift = settings.flow_schedule_shift;
    if (flow.shift_by_tokens && !training.schedule.dynamic)
        throw Error{Errc::bad_value,
                    "'flow_schedule_auto_shift' is true, and this model's scheduler_config.json has no shift by size",
                    "write \"flow_schedule_shift\": 3, or another number, in its place"};
    flow.noise = noise_of(settings);
    const bool is_range = settings.flux_guidance_mode == config::FluxGuidanceMode::random_range;
    if (is_range && settings.flux_guidance_min > settings.flux_guidance_max)
        throw Error{Errc::bad_value, "'flux_guidance_min' is above 'flux_guidance_max'", "give the smaller one first"};
    training.least_guidance = is_range ? settings.flux_guidance_min : settings.flux_guidance_value;
    training.most_guidance = is_range ? settings.flux_guidance_max : settings.flux_guidance_value;
    training.masks_text = settings.flux_attention_masked_training;
    return training;
}

inline diffusion::DdpmObjective ddpm_objective(const config::ModelSettings& settings,
                                               const std::optional<diffusion::SchedulerConfig>& scheduler) {
    diffusion::DdpmScheduleOptions schedule;
    diffusion::DdpmObjectiveOptions options;
    if (scheduler) {
        schedule = std::get<diffusion::DdpmScheduleOptions>(scheduler->schedule);
        options.prediction = scheduler->prediction;
    }
    if (settings.rescale_betas_zero_snr) schedule.zero_terminal_snr = *settings.rescale_betas_zero_snr;
    if (settings.prediction_type)
        options.prediction =
            *settings.prediction_type == config::PredictionType::epsilon  ? diffusion::Prediction::epsilon
            : *settings.prediction_type == config::PredictionType::sample ? diffusion::Prediction::sample
                                                                          : diffusion::Prediction::v;
    if (schedule.zero_terminal_snr && options.prediction == diffusion::Prediction::epsilon)
        throw Error{Errc::bad_value,
                    "noise is to be predicted (epsilon) where 'rescale_betas_zero_snr' leaves nothing but noise, so "
                    "that the answer is the question",
                    "write \"prediction_type\": \"v_prediction\", or leave rescale_betas_zero_snr out"};
    options.min_snr_gamma = settings.snr_gamma;
    options.noise = noise_of(settings);
    return diffusion::DdpmObjective{diffusion::DdpmSchedule{schedule}, options};
}

}  // namespace strata::families::detail
