#pragma once
// strata/config/trainer_config.hpp - config.json: the numbers of a training run.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/adapter_settings.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/config/model_settings.hpp>
#include <strata/config/sample_size.hpp>
#include <strata/config/schema.hpp>
#include <strata/config/simpletuner.hpp>
#include <strata/config/trainer_reading.hpp>
#include <strata/config/webhook_list.hpp>
#include <strata/core/sampling_method.hpp>
#include <strata/core/schedule_shape.hpp>
#include <strata/options/train_options.hpp>

namespace strata::config {

/// What `max_grad_norm` limits.
enum class GradClipMethod : std::uint8_t {
    norm,   ///< the norm of all gradients together
    value,  ///< every element of a gradient, to -max_grad_norm .. max_grad_norm
};

/// Where the moving average of the weights is kept.
enum class EmaDevice : std::uint8_t {
    cpu,          ///< Ema<Cpu>
    accelerator,  ///< Ema<Device>
};

/// Which weights draw the samples of a trainer that keeps a moving average of them.
enum class EmaValidation : std::uint8_t {
    none,        ///< the trained ones
    ema_only,    ///< the average
    comparison,  ///< both
};

/// What becomes of a sample that cannot be used when its turn comes.
enum class OnBrokenSample : std::uint8_t {
    stop,     ///< the run ends and names it
    replace,  ///< the next of its bucket takes its turn; it is counted and named
};

/// How the training sizes of data sets are chosen; formulas in docs/data.md.
enum class BucketMode : std::uint8_t {
    nearest,      ///< `default`: a fixed list of sizes, of which a picture takes the nearest in aspect ratio
    simpletuner,  ///< the sizes that SimpleTuner gives the same pictures, from ratios rounded to some decimals
};

/// A checked trainer configuration. Keys have the names of the members unless the schema says otherwise.
///
/// What decides the types of a trainer (stage, offload, update rule, number formats) is in `reading`: a program composes
/// it, and is refused where the file asks for another one (train::options_from); `strata train` chooses by it.
struct TrainerConfig {
    std::filesystem::path output_dir = "output";
    std::filesystem::path data_backend_config = "multidatabackend.json";
    std::int64_t max_train_steps = 0;   ///< optimizer steps; 0: num_train_epochs decides
    std::int64_t num_train_epochs = 0;  ///< 0: max_train_steps decides; load_trainer_config leaves exactly one at 0
    std::int64_t train_batch_size = 4;  ///< samples of one rank in one micro-batch

    /// What the trainer is told, in its own structs. Its numbers have their defaults there, but for these: files of this
    /// kind have others.
    TrainOptions<zero::NoRule> options{
        .schedule = {.shape = ScheduleShape::constant_with_warmup, .power = 0.8},
        .engine = {.max_grad_norm = 2, .ema = {.decay = 0.995}},
        .checkpoint_every = 500,
        .exported = {.weights = true},
    };
    ModelSettings model;      ///< which model, its files and its objective: families::make_family()
    AdapterSettings adapter;  ///< what is trained over it, where not all of its weights are
    GivenOptions optimizer;   ///< keys optimizer_...: the update rule's own, which knows what they may be
    GivenOptions average;     ///< keys ema_... of an average of the program's own: train::ConfigFor
    GradClipMethod grad_clip_method = GradClipMethod::norm;  ///< what options.engine.max_grad_norm limits

    std::optional<bool> use_ema;          ///< nullopt: as the program composes it
    std::int64_t ema_warmup_steps = 0;    ///< before this step the average is the weights; 0: the decay grows slowly
    std::optional<EmaDevice> ema_device;  ///< nullopt: as the program composes it
    EmaValidation ema_validation = EmaValidation::comparison;
    bool disable_benchmark = false;

    std::int64_t validation_step_interval = 100;
    std::int64_t validation_epoch_interval = 0;  ///< 0: none besides
    bool validation_on_startup = false;
    std::vector<std::string> validation_prompts;
    std::filesystem::path validation_prompt_file;  ///< of more; all_prompts() has both
    std::string validation_negative_prompt;        ///< empty: what the recipe says of a dropped caption
    std::int64_t num_validation_images = 1;        ///< of each prompt and size
    double validation_guidance = 7.5;
    double validation_guidance_real = 1;
    double validation_guidance_rescale = 0;
    std::optional<SamplingMethod> validation_noise_scheduler;  ///< nullopt: that of the model's authors
    std::int64_t validation_num_inference_steps = 30;
    std::vector<SampleSize> validation_resolution{{256, 256}};
    std::int64_t validation_seed = 42;
    /// Those of both keys. Throws as read_prompts() does.
    [[nodiscard]] std::vector<std::string> all_prompts() const;
    std::int64_t eval_steps_interval =
        0;  ///< of data sets to evaluate with; 0: evaluation_interval() is validation_step_interval
    [[nodiscard]] std::int64_t evaluation_interval() const noexcept {
        return eval_steps_interval > 0 ? eval_steps_interval : validation_step_interval;
    }

    double caption_dropout_probability = 0.1;
    bool allow_dataset_oversubscription = false;  ///< of data sets that do not say otherwise: SmallBuckets::repeat
    DataBackendSampling data_backend_sampling = DataBackendSampling::auto_weighting;
    OnBrokenSample on_broken_sample = OnBrokenSample::stop;
    double resolution = 1024;
    ResolutionType resolution_type = ResolutionType::pixel_area;
    CaptionStrategy caption_strategy = CaptionStrategy::textfile;
    std::int64_t aspect_bucket_alignment = 64;
    BucketMode bucket_mode = BucketMode::nearest;
    std::int64_t aspect_bucket_rounding = 2;  ///< decimals of an aspect ratio in bucket_mode simpletuner, 1 to 9
    bool compress_disk_cache = false;
    std::int64_t vae_batch_size = 4;           ///< pictures that are encoded together
    std::int64_t text_encoder_batch_size = 4;  ///< captions that are encoded together
    std::int64_t threads = 0;                  ///< of a rank, that make batches; 0: its part of the host's cores
    std::int64_t decode_threads = 0;           ///< of these, that decode pictures at the same time; 0: all
    std::int64_t dataloader_prefetch_qlen = 10;
    std::int64_t cache_memory_mib = 512;
    std::int64_t store_retry_seconds = 300;
    std::vector<webhooks::WebhookOptions> webhooks;  ///< `webhook_config`: whom the run tells what happens in it
    ImageDataset of_data_sets;  ///< values of keys that data sets have, for those without their own

    TrainerReading reading;  ///< what the file says besides, and what became of each of its keys

    /// What an image data set gets for keys it does not have.
    [[nodiscard]] ImageDataset image_defaults() const;

    // What strata::run<config::TrainerConfig>() asks for.
    static constexpr std::string_view default_file = "config.json";  ///< without --config
    [[nodiscard]] static const Schema<TrainerConfig>& schema();
    [[nodiscard]] static TrainerConfig load(const std::filesystem::path& file, const Overrides& overrides);
};

[[nodiscard]] const Schema<TrainerConfig>& trainer_schema();

/// Keys optimizer_... that update rules of strata have. One that the program's rule does not have is passed over, so
/// that a file serves programs with different rules.
[[nodiscard]] const std::vector<std::string_view>& usual_rule_keys();

/// The steps of look_at_trainer_config() around the reading itself, for settings that have more keys.
///
///   read    returns what the object and the overrides say; its keys are those of trainer_schema(), whatever the file
///           calls them
///   unsaid  what is trained where neither says `model_type`
void read_trainer_config(
    const Document& document, const Overrides& overrides,
    const std::function<TrainerConfig&(const nlohmann::json& object, const Source& source, Problems& problems)>& read,
    ModelType unsaid = ModelType::full);

/// Reads a trainer configuration of strata's or SimpleTuner's: JSON, TOML or a shell's file of settings (see
/// load_trainer_document()). Keys may be written with a leading "--". What SimpleTuner has and strata does otherwise is in
/// `reading.findings`.
///
///   overrides  what a command line says in place of the file
///
/// Throws Errc::unreadable_config; or unknown_key, unsupported_key, bad_value with everything that is wrong, each with
/// its place in the file, or the flag.
[[nodiscard]] TrainerConfig load_trainer_config(const std::filesystem::path& file, const Overrides& overrides = {});

/// The same of a document, and what is refused is among the findings. Throws Errc::bad_value for one that is no object.
[[nodiscard]] TrainerConfig look_at_trainer_config(const Document& document, const Overrides& overrides = {});

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/trainer_config.ipp>
#endif
