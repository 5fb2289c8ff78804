#pragma once
// strata/config/impl/simpletuner_env.ipp - SimpleTuner's config.env: names of variables, and arguments in some of them.

#include <algorithm>
#include <cctype>
#include <utility>

#include <strata/config/env_file.hpp>
#include <strata/config/impl/key.ipp>
#include <strata/config/impl/text_checks.ipp>
#include <strata/config/key.hpp>
#include <strata/config/simpletuner.hpp>

namespace strata::config {

namespace detail {

/// A key of either table. Defined beside that of our own keys, whose header comes below: it may be what includes this.
[[nodiscard]] bool is_trainer_key(std::string_view key);

inline bool is_switch(std::string_view key) {
    constexpr std::string_view switches[] = {"use_ema",
                                             "use_dora",
                                             "gradient_checkpointing",
                                             "controlnet",
                                             "push_to_hub",
                                             "push_checkpoints_to_hub",
                                             "allow_tf32",
                                             "pure_bf16",
                                             "delete_problematic_images",
                                             "delete_unwanted_images",
                                             "disable_benchmark"};
    return std::find(std::begin(switches), std::end(switches), key) != std::end(switches);
}

/// Makes the object of a shell file's settings.
class EnvDocument {
public:
    EnvDocument(std::string source, const EnvFile& file) : file_{file}, builder_{std::move(source)} {}

    Document read() {
        for (const EnvProblem& problem : file_.problems)
            remark({static_cast<int>(problem.line), static_cast<int>(problem.column)}, problem.is_error, problem.what,
                   problem.fix);
        builder_.begin_object({1, 1});
        for (const EnvAssignment& one : file_.assignments) setting(one);
        builder_.end();
        return builder_.finish();
    }

private:
    void remark(Mark mark, bool refused, std::string what, std::string fix) {
        builder_.remark({mark, "", refused, std::move(what), std::move(fix)});
    }
    void put(std::string_view key, std::string value, Mark name, Mark mark) {
        builder_.key(std::string{key}, name);
        builder_.scalar(NodeKind::text, std::move(value), mark);
    }

    void setting(const EnvAssignment& one) {
        const Mark name{static_cast<int>(one.line), 1};
        const Mark mark{static_cast<int>(one.line), static_cast<int>(one.column)};
        if (one.value.empty()) return;  // as if it were not set
        if (one.name == "TRAINER_EXTRA_ARGS" || one.name == "DEBUG_EXTRA_ARGS") return arguments(one.value, name, mark);
        if (one.value == "true" && model_of(one.name) != nullptr)
            return put("model_family", model_of(one.name), name, mark);
        if (model_of(one.name) != nullptr) return;
        const std::optional<std::string> key = key_of(one.name);
        if (key && key->empty()) return;
        if (!key) return strange(one, name);
        const ForeignKey* const foreign = find_simpletuner_key(*key);
        if (one.is_computed)
            return remark(mark, foreign == nullptr || foreign->effect != ForeignEffect::instead,
                          "'" + one.name + "' is what a command prints, and strata runs none",
                          "write the value that it has");
        std::string value = one.value;
        if (is_switch(*key) && (value == "0" || value == "1")) value = value == "1" ? "true" : "false";
        if (one.name == "USE_BITFIT") value = value == "true" ? "bitfit" : "none";
        put(*key, std::move(value), name, mark);
    }
    /// Of a name with which files of some years ago choose the model; nullptr for others.
    static const char* model_of(std::string_view name) {
        using Pair = std::pair<std::string_view, const char*>;
        for (const auto& [switch_name, family] :
             {Pair{"FLUX", "flux"}, Pair{"STABLE_DIFFUSION_3", "sd3"}, Pair{"PIXART_SIGMA", "pixart_sigma"},
              Pair{"KOLORS", "kolors"}, Pair{"STABLE_DIFFUSION_LEGACY", "sd1x"}, Pair{"AURA_DIFFUSION", "auraflow"},
              Pair{"AURAFLOW", "auraflow"}, Pair{"SMOLDIT", "smoldit"}})
            if (switch_name == name) return family;
        return nullptr;
    }
    /// "" for a name that is no setting; nullopt for one that nobody knows.
    static std::optional<std::string> key_of(const std::string& name) {
        const auto& names = simpletuner_env_names();
        const auto found =
            std::find_if(names.begin(), names.end(), [&](const EnvName& one) { return one.name == name; });
        if (found != names.end()) return std::string{found->key};
        std::string lower = name;
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        return is_trainer_key(lower) ? std::optional{lower} : std::nullopt;
    }
    void strange(const EnvAssignment& one, Mark name) {
        if (one.is_variable) return;  // another line has what it is for
        std::vector<std::string_view> known;
        for (const EnvName& other : simpletuner_env_names())
            if (!other.key.empty()) known.push_back(other.name);
        const std::string_view near = nearest_name(one.name, known);
        // A variable of something else may have any name: only one that is nearly a setting is a typing error.
        if (!near.empty() && edit_distance(one.name, near) <= 2)
            return remark(name, true, "'" + one.name + "' is unknown", "did you mean '" + std::string{near} + "'");
        remark(name, false, "'" + one.name + "' is no setting of SimpleTuner's, and strata reads no such variable",
               "export it where it is needed, or remove the line");
    }
    /// --name=value, --name value and --name, as a command line has them.
    void arguments(const std::string& text, Mark name, Mark mark) {
        std::vector<std::string> words;
        constexpr std::string_view blanks = " \t\n";
        for (std::size_t begin = text.find_first_not_of(blanks); begin != std::string::npos;) {
            const std::size_t end = std::min(text.find_first_of(blanks, begin), text.size());
            words.push_back(text.substr(begin, end - begin));
            begin = text.find_first_not_of(blanks, end);
        }
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (!words[i].starts_with("--")) {
                remark(mark, true, "'" + words[i] + "' in a list of arguments is none", "write --name=value");
                continue;
            }
            const std::size_t equals = words[i].find('=');
            const std::string key = words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
            const bool has_value =
                equals == std::string::npos && i + 1 < words.size() && !words[i + 1].starts_with("--");
            std::string value = equals != std::string::npos ? words[i].substr(equals + 1)
                                : has_value                 ? words[i + 1]
                                                            : "true";
            if (has_value) ++i;
            put(key, std::move(value), name, mark);
        }
    }

    const EnvFile& file_;
    DocumentBuilder builder_;
};

}  // namespace detail

STRATA_INLINE const std::vector<EnvName>& simpletuner_env_names() {
    static const std::vector<EnvName> names{
        {"RESUME_CHECKPOINT", "resume_from_checkpoint"},
        {"DATALOADER_CONFIG", "data_backend_config"},
        {"TRAINING_SEED", "seed"},
        {"ACCELERATE_CONFIG_PATH", "accelerate_config"},
        {"ACCELERATE_EXTRA_ARGS", "accelerate_extra_args"},
        {"USE_XFORMERS", "enable_xformers_memory_efficient_attention"},
        {"MINIMUM_RESOLUTION", "minimum_image_size"},
        {"USE_BITFIT", "layer_freeze_strategy"},
        {"PUSH_CHECKPOINTS", "push_checkpoints_to_hub"},
        {"HUB_MODEL_NAME", "hub_model_id"},
        {"MAX_NUM_STEPS", "max_train_steps"},
        {"NUM_EPOCHS", "num_train_epochs"},
        {"CHECKPOINTING_LIMIT", "checkpoints_total_limit"},
        {"MODEL_NAME", "pretrained_model_name_or_path"},
        {"USE_GRADIENT_CHECKPOINTING", "gradient_checkpointing"},
        {"LR_SCHEDULE", "lr_scheduler"},
        {"LEARNING_RATE_END", "lr_end"},
        {"MIN_SNR_GAMMA", "snr_gamma"},
        {"TRAINING_NUM_PROCESSES", "num_processes"},
        {"TRAINING_NUM_MACHINES", "num_machines"},
        {"TRAINER_DYNAMO_BACKEND", "dynamo_backend"},
        {"TRAINING_DYNAMO_BACKEND", "dynamo_backend"},
        {"DELETE_ERRORED_IMAGES", "delete_problematic_images"},
        {"DELETE_SMALL_IMAGES", "delete_unwanted_images"},
        {"TEXT_ENCODER_FREEZE_STRATEGY", "freeze_encoder_strategy"},
        {"TEXT_ENCODER_FREEZE_BEFORE", "freeze_encoder_before"},
        {"TEXT_ENCODER_FREEZE_AFTER", "freeze_encoder_after"},
        // The names that are keys in capitals and that people write most, so that a typing error has a nearest name.
        {"OUTPUT_DIR", "output_dir"},
        {"MODEL_TYPE", "model_type"},
        {"MODEL_FAMILY", "model_family"},
        {"LEARNING_RATE", "learning_rate"},
        {"LR_WARMUP_STEPS", "lr_warmup_steps"},
        {"OPTIMIZER", "optimizer"},
        {"TRAIN_BATCH_SIZE", "train_batch_size"},
        {"GRADIENT_ACCUMULATION_STEPS", "gradient_accumulation_steps"},
        {"MIXED_PRECISION", "mixed_precision"},
        {"RESOLUTION", "resolution"},
        {"RESOLUTION_TYPE", "resolution_type"},
        {"CAPTION_DROPOUT_PROBABILITY", "caption_dropout_probability"},
        {"CHECKPOINTING_STEPS", "checkpointing_steps"},
        {"VALIDATION_STEPS", "validation_steps"},
        {"VALIDATION_PROMPT", "validation_prompt"},
        {"VALIDATION_RESOLUTION", "validation_resolution"},
        {"VALIDATION_GUIDANCE", "validation_guidance"},
        {"VALIDATION_NUM_INFERENCE_STEPS", "validation_num_inference_steps"},
        {"VALIDATION_SEED", "validation_seed"},
        {"USE_EMA", "use_ema"},
        {"EMA_DECAY", "ema_decay"},
        // Variables of Python's libraries and of SimpleTuner's own start.
        {"TOKENIZERS_PARALLELISM", ""},
        {"SIMPLETUNER_LOG_LEVEL", ""},
        {"SIMPLETUNER_ENVIRONMENT", ""},
        {"SIMPLETUNER_ENV", ""},
        {"SIMPLETUNER_CONFIG_BACKEND", ""},
        {"CONFIG_BACKEND", ""},
        {"CONFIG_TYPE", ""},
        {"ENV", ""},
        {"VENV_PATH", ""},
        {"CUDA_VISIBLE_DEVICES", ""},
        {"HF_HOME", ""},
        {"HF_ENDPOINT", ""},
        {"WANDB_API_KEY", ""},
    };
    return names;
}

STRATA_INLINE Document parse_env(std::string_view text, std::string source, const Environment& environment) {
    text = detail::checked_text(text, source);
    const EnvFile file = read_env_file(text, environment);
    return detail::EnvDocument{std::move(source), file}.read();
}

}  // namespace strata::config

#include <strata/config/trainer_config.hpp>
