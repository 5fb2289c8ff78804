#pragma once
// strata/config/impl/trainer_config.ipp - the keys of a trainer configuration and what must hold between them.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/impl/adapter_settings.ipp>
#include <strata/config/impl/dataset.ipp>
#include <strata/config/impl/key.ipp>
#include <strata/config/impl/model_settings.ipp>
#include <strata/config/impl/trainer_adapter.ipp>
#include <strata/config/impl/trainer_findings.ipp>
#include <strata/config/impl/trainer_translation.ipp>
#include <strata/config/impl/validation_keys.ipp>
#include <strata/config/prompt_file.hpp>
#include <strata/config/simpletuner.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/config/webhook_list.hpp>
#include <strata/core/ranges.hpp>

namespace strata::config {

STRATA_INLINE ImageDataset TrainerConfig::image_defaults() const {
    ImageDataset defaults = of_data_sets;
    defaults.resolution = resolution;
    defaults.resolution_type = resolution_type;
    defaults.caption_strategy = caption_strategy;
    return defaults;
}

STRATA_INLINE std::vector<std::string> TrainerConfig::all_prompts() const {
    std::vector<std::string> prompts = validation_prompts;
    if (!validation_prompt_file.empty())
        for (std::string& prompt : read_prompts(validation_prompt_file)) prompts.push_back(std::move(prompt));
    return prompts;
}

STRATA_INLINE const Schema<TrainerConfig>& trainer_schema() {
    using C = TrainerConfig;
    static const Schema<C> schema = [] {
        Schema<C> s;
        s.text("output_dir", &C::output_dir, "Folder of checkpoints, metrics, samples and the report");
        s.text("data_backend_config", &C::data_backend_config, "The dataset list");
        s.integer("max_train_steps", &C::max_train_steps, ranges::count,
                  "Optimizer steps of the run; 0 leaves it to `num_train_epochs`");
        s.integer("num_train_epochs", &C::num_train_epochs, ranges::count,
                  "Epochs of the run; 0 leaves it to `max_train_steps`, and with both at 0 it is 1");
        s.beside(&C::model, model_schema());
        s.beside(&C::adapter, adapter_schema());
        s.integer("train_batch_size", &C::train_batch_size, {1, 65536}, "Samples of one rank in one micro-batch");
        s.described(&C::options,
                    {"max_steps", "engine.max_grad_value", "engine.ema.min_decay", "engine.ema.update_after_step"});
        const std::string otherwise = "; null leaves the rule's own default";
        s.given("optimizer_beta1", &C::optimizer, ranges::beta1, "First decay of the update rule" + otherwise)
            .alias("adam_beta1");
        s.given("optimizer_beta2", &C::optimizer, ranges::beta2, "Second decay of the update rule" + otherwise)
            .alias("adam_beta2");
        s.given("optimizer_epsilon", &C::optimizer, ranges::epsilon, "Epsilon of the update rule" + otherwise)
            .alias("adam_epsilon");
        s.given("optimizer_weight_decay", &C::optimizer, ranges::weight_decay, "Weight decay" + otherwise)
            .alias("adam_weight_decay");
        s.given("optimizer_momentum", &C::optimizer, ranges::momentum, "Momentum of `Sgd`" + otherwise);
        s.family({"optimizer_", "Whatever else the program's update rule can be told, by the names of its options"},
                 &C::optimizer);
        s.choice<GradClipMethod>(
            "grad_clip_method", &C::grad_clip_method,
            {{"norm", GradClipMethod::norm}, {"value", GradClipMethod::value}},
            "`norm`: the whole gradient is scaled down to the norm `max_grad_norm`; `value`: every element "
            "is clamped to -`max_grad_norm` .. `max_grad_norm`");
        s.flag(
            "use_ema", &C::use_ema,
            "Whether the program's trainer keeps a moving average of the weights (`Ema<>`): one that does otherwise is refused; "
            "null leaves it to the program");
        s.integer(
            "ema_warmup_steps", &C::ema_warmup_steps, ranges::count,
            "The average is a copy of the weights before this step and has the whole decay from it on; with 0 the decay grows slowly");
        s.choice<EmaDevice>(
            "ema_device", &C::ema_device, {{"cpu", EmaDevice::cpu}, {"accelerator", EmaDevice::accelerator}},
            "Where the program's trainer keeps the average (`Ema<Cpu>`, `Ema<Device>`): one that does otherwise is "
            "refused; null leaves it to the program");
        detail::add_validation_keys(s);
        s.number("caption_dropout_probability", &C::caption_dropout_probability, {0, 1},
                 "Share of visits that see an empty caption, so that guidance can work");
        s.flag("allow_dataset_oversubscription", &C::allow_dataset_oversubscription,
               "Raise the repeats of a bucket that holds fewer samples than the effective batch, instead of stopping; "
               "another spelling of `small_buckets` `repeat`");
        s.choice<DataBackendSampling>(
            "data_backend_sampling", &C::data_backend_sampling,
            {{"auto-weighting", DataBackendSampling::auto_weighting}, {"uniform", DataBackendSampling::uniform}},
            "In which order an epoch draws data sets: in proportion to their batches, or to `probability` alone until one "
            "is used up");
        s.choice<OnBrokenSample>(
            "on_broken_sample", &C::on_broken_sample,
            {{"stop", OnBrokenSample::stop}, {"replace", OnBrokenSample::replace}},
            "A picture that cannot be decoded when its turn comes: `stop` ends the run, `replace` gives the turn to "
            "the [next of its bucket](data.md#broken-samples)");
        s.number("resolution", &C::resolution, {0.01, 16384}, "`resolution` of data sets without their own");
        s.choice("resolution_type", &C::resolution_type, detail::resolution_types(),
                 "`resolution_type` of data sets without their own");
        s.choice("caption_strategy", &C::caption_strategy, detail::caption_strategies(),
                 "`caption_strategy` of data sets without their own");
        s.integer("aspect_bucket_alignment", &C::aspect_bucket_alignment, {8, 64},
                  "Both edges of a bucket are multiples of this: 8, 16, 24, 32 or 64 pixels");
        s.choice<BucketMode>(
            "bucket_mode", &C::bucket_mode,
            {{"default", BucketMode::nearest}, {"simpletuner", BucketMode::simpletuner}},
            "How training sizes are chosen: [strata's rule](data.md#the-bucket-rule), or the sizes that "
            "SimpleTuner gives the same pictures");
        s.integer("aspect_bucket_rounding", &C::aspect_bucket_rounding, {1, 9},
                  "Decimals of an aspect ratio in `bucket_mode` `simpletuner`; without effect otherwise");
        s.flag(
            "compress_disk_cache", &C::compress_disk_cache,
            "Keep cached latents and captions inside gzip; entries of the dataset list may say otherwise for theirs");
        s.integer("vae_batch_size", &C::vae_batch_size, {1, 1024},
                  "Pictures of one size that are encoded together, where a device has memory for more than one");
        s.integer("text_encoder_batch_size", &C::text_encoder_batch_size, {1, 4096},
                  "Captions that are embedded together");
        s.integer("threads", &C::threads, {0, 1024},
                  "Threads of a rank that read, decode and put together batches; 0 = its part of the host's cores");
        s.integer("decode_threads", &C::decode_threads, {0, 1024},
                  "How many of `threads` decode pictures at the same time; 0 = all of them");
        s.integer("dataloader_prefetch_qlen", &C::dataloader_prefetch_qlen, {1, 1000}, "Batches that are made ahead");
        s.integer("cache_memory_mib", &C::cache_memory_mib, {0, 1e9},
                  "MiB of cached latents that a rank may keep in memory; beyond it they are read again at each visit");
        s.integer(
            "store_retry_seconds", &C::store_retry_seconds, {0, 86400},
            "Seconds for which a request to a bucket that fails is made again, once its server has ever answered");
        s.custom("webhook_config", "object, list, JSON text or path", "null",
                 "Servers that are told what happens in the run: a webhook, a list of them, or a file with either "
                 "(docs/webhooks.md)",
                 [](C& config, const Value& value) { config.webhooks = read_webhooks(value); });
        s.some_of(
            &C::of_data_sets, image_schema(),
            {"minimum_image_size", "maximum_image_size", "target_downsample_size", "max_upscale_threshold", "crop",
             "crop_style", "crop_aspect", "repeats", "small_buckets", "instance_prompt", "prepend_instance_prompt",
             "only_instance_prompt", "preserve_data_backend_cache", "skip_file_discovery", "vae_cache_ondemand",
             "vae_cache_disable", "vae_cache_clear_each_epoch", "delete_problematic_images"},
            "Of data sets without their own");
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<TrainerConfig>& TrainerConfig::schema() { return trainer_schema(); }

STRATA_INLINE TrainerConfig TrainerConfig::load(const std::filesystem::path& file, const Overrides& overrides) {
    return load_trainer_config(file, overrides);
}

STRATA_INLINE const std::vector<std::string_view>& usual_rule_keys() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> all;
        for (const KeyInfo& info : trainer_schema().keys()) {
            if (!info.key.starts_with("optimizer_")) continue;
            all.push_back(info.key);
            if (!info.alias.empty()) all.push_back(info.alias);
        }
        return all;
    }();
    return names;
}

namespace detail {

STRATA_INLINE bool is_trainer_key(std::string_view key) {
    if (find_simpletuner_key(key) != nullptr) return true;
    const auto& own = trainer_schema().keys();
    return std::any_of(own.begin(), own.end(),
                       [&](const KeyInfo& info) { return info.key == key || info.alias == key; });
}

/// How messages call keys that the file or the command line has.
class KeyNames {
public:
    KeyNames(const Overrides& overrides, const TrainerTranslation& file) : overrides_{overrides}, file_{file} {}
    [[nodiscard]] bool is_flag(std::string_view key) const { return flag_of(key) != nullptr; }
    /// "--seed", or "'seed'".
    [[nodiscard]] std::string name(std::string_view key) const {
        const Override* const flag = flag_of(key);
        return flag != nullptr ? "--" + flag->name : "'" + file_.written(std::string{key}) + "'";
    }
    /// Of keys that a sentence names: the place of the first that the file has; nothing if the command line has them all.
    [[nodiscard]] std::string place(std::initializer_list<std::string_view> keys, const std::string& file) const {
        if (std::all_of(keys.begin(), keys.end(), [&](std::string_view key) { return is_flag(key); })) return {};
        for (const std::string_view key : keys)
            if (const auto node = file_.nodes().find(std::string{key}); node != file_.nodes().end() && !is_flag(key))
                return node->second->place() + ": ";
        return file + ": ";
    }

private:
    [[nodiscard]] const Override* flag_of(std::string_view key) const {
        const auto& keys = trainer_schema().keys();
        const auto info = std::find_if(keys.begin(), keys.end(), [&](const KeyInfo& one) { return one.key == key; });
        const auto found = std::find_if(overrides_.begin(), overrides_.end(), [&](const Override& given) {
            return given.name == key || (info != keys.end() && !info->alias.empty() && given.name == info->alias);
        });
        return found == overrides_.end() ? nullptr : &*found;
    }
    const Overrides& overrides_;
    const TrainerTranslation& file_;
};

/// What must hold between keys.
inline void check_trainer(TrainerConfig& config, const KeyNames& names, const std::string& file, Problems& problems) {
    const auto refuse = [&](std::initializer_list<std::string_view> keys, const std::string& what,
                            std::string_view fix) {
        problems.add({Errc::bad_value, names.place(keys, file) + what, fix});
    };
    const auto name = [&](std::string_view key) { return names.name(key); };
    if (config.max_train_steps > 0 && config.num_train_epochs > 0)
        refuse({"max_train_steps", "num_train_epochs"},
               name("max_train_steps") + " and " + name("num_train_epochs") + " are both given",
               "keep one of them, or set the other to 0");
    if (config.max_train_steps == 0 && config.num_train_epochs == 0) config.num_train_epochs = 1;
    const std::optional<SmallBuckets> small = config.of_data_sets.small_buckets;
    if (config.allow_dataset_oversubscription && small && *small != SmallBuckets::repeat)
        refuse({"small_buckets", "allow_dataset_oversubscription"},
               name("allow_dataset_oversubscription") + " is true, and " + name("small_buckets") + " is not repeat",
               "keep one of them");
    const std::int64_t alignment = config.aspect_bucket_alignment;
    if (alignment != 8 && alignment != 16 && alignment != 24 && alignment != 32 && alignment != 64)
        refuse({"aspect_bucket_alignment"},
               (names.is_flag("aspect_bucket_alignment") ? "" : "key ") + name("aspect_bucket_alignment") + " is " +
                   std::to_string(alignment),
               "use 8, 16, 24, 32 or 64");
    const auto given = [&](const char* key, const char* alias) {
        return config.optimizer.find(key) != nullptr || config.optimizer.find(alias) != nullptr;
    };
    if (given("optimizer_beta1", "adam_beta1") != given("optimizer_beta2", "adam_beta2"))
        refuse({"optimizer_beta1", "optimizer_beta2"},
               "only one of " + name("optimizer_beta1") + " and " + name("optimizer_beta2") + " is given",
               "give both or none");
    const optim::Schedule& schedule = config.options.schedule;
    if (schedule.end_lr > schedule.lr)
        refuse({"lr_end", "learning_rate"}, name("lr_end") + " is above " + name("learning_rate"),
               "use a final learning rate that is not larger");
    if (config.max_train_steps > 0 && schedule.warmup_steps > config.max_train_steps)
        refuse({"lr_warmup_steps", "max_train_steps"}, name("lr_warmup_steps") + " is above " + name("max_train_steps"),
               "use a shorter warm-up");
}

}  // namespace detail

STRATA_INLINE TrainerConfig load_trainer_config(const std::filesystem::path& path, const Overrides& overrides) {
    TrainerConfig config = look_at_trainer_config(load_trainer_document(path), overrides);
    config.reading.findings.throw_if_refused();
    return config;
}

STRATA_INLINE TrainerConfig look_at_trainer_config(const Document& document, const Overrides& overrides) {
    TrainerConfig config;
    read_trainer_config(document, overrides,
                        [&](const nlohmann::json& object, const Source& source, Problems& problems) -> TrainerConfig& {
                            trainer_schema().read(object, source, "", config, overrides, problems);
                            return config;
                        });
    return config;
}

STRATA_INLINE void read_trainer_config(
    const Document& document, const Overrides& overrides,
    const std::function<TrainerConfig&(const nlohmann::json& object, const Source& source, Problems& problems)>& read,
    ModelType unsaid) {
    TrainerReading reading;
    reading.file = document.source;
    reading.findings.take(document);
    if (!document.root.is(NodeKind::object))
        throw Error{Errc::bad_value, document.source + " is not an object of keys and values",
                    "write {\"key\": value, ...}"};
    const detail::FlagKeys flags{document, overrides};
    detail::TrainerTranslation translation{document, reading};
    translation.read();
    translation.leave_out_adapter(detail::model_type_of(translation, overrides, unsaid));
    const Source source = detail::source_of(document, translation);
    Problems problems;
    TrainerConfig& config = read(translation.own(), source, problems);
    reading.model_family = config.model.family;
    reading.model_flavour = config.model.flavour;
    reading.model_path = config.model.path;
    detail::check_trainer(config, detail::KeyNames{overrides, translation}, document.source, problems);
    if (!config.adapter.model_type && unsaid == ModelType::lora) config.adapter.model_type = unsaid;
    detail::finish_adapter(document, translation, reading, config);
    detail::finish_reading(document, translation, flags, problems, reading, config);
    config.reading = std::move(reading);
}

}  // namespace strata::config
