#pragma once
// strata/config/trainer_config.hpp - config.json: the numbers of a training run.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/dataset_list.hpp>
#include <strata/config/schema.hpp>
#include <strata/core/schedule_shape.hpp>

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

/// How the training sizes of data sets are chosen; formulas in docs/data.md.
enum class BucketMode : std::uint8_t {
    nearest,      ///< `default`: a fixed list of sizes, of which a picture takes the nearest in aspect ratio
    simpletuner,  ///< the sizes that SimpleTuner gives the same pictures, from ratios rounded to some decimals
};

/// A checked trainer configuration. Keys have the names of the members unless the schema says otherwise.
///
/// What decides the types of a trainer (stage, offload, update rule, number formats) is no key here:
/// the program composes it.
struct TrainerConfig {
    std::filesystem::path output_dir = "output";
    std::filesystem::path data_backend_config = "multidatabackend.json";
    std::int64_t seed = 42;

    std::int64_t max_train_steps = 0;   ///< optimizer steps; 0: num_train_epochs decides
    std::int64_t num_train_epochs = 0;  ///< 0: max_train_steps decides; load_trainer_config leaves exactly one at 0
    std::int64_t train_batch_size = 4;  ///< samples of one rank in one micro-batch
    std::int64_t gradient_accumulation_steps = 1;

    double learning_rate = 1e-4;
    ScheduleShape lr_scheduler = ScheduleShape::constant_with_warmup;
    std::int64_t lr_warmup_steps = 0;
    double lr_end = 0;
    std::int64_t lr_num_cycles = 1;  ///< of cosine_with_restarts
    double lr_power = 0.8;           ///< of polynomial
    std::optional<double> optimizer_beta1;  ///< nullopt: the update rule's own default
    std::optional<double> optimizer_beta2;
    std::optional<double> optimizer_epsilon;
    std::optional<double> optimizer_weight_decay;
    std::optional<double> optimizer_momentum;
    double max_grad_norm = 2;  ///< 0: no clipping
    GradClipMethod grad_clip_method = GradClipMethod::norm;

    std::optional<bool> use_ema;  ///< nullopt: as the program composes it
    double ema_decay = 0.995;
    std::int64_t ema_warmup_steps = 0;     ///< before this step the average is the weights; 0: the decay grows slowly
    std::int64_t ema_update_interval = 1;  ///< optimizer steps
    std::optional<EmaDevice> ema_device;   ///< nullopt: as the program composes it
    EmaValidation ema_validation = EmaValidation::comparison;

    std::int64_t prefetch_bucket_bytes = -1;  ///< -1: of the largest unit
    std::int64_t max_live_parameters = 0;     ///< 0: no bound
    std::int64_t collective_timeout = 600;    ///< seconds

    std::int64_t checkpoint_step_interval = 500;
    std::int64_t checkpoints_total_limit = 5;

    std::int64_t validation_step_interval = 100;
    std::vector<std::string> validation_prompts;
    double validation_guidance = 7.5;
    std::int64_t validation_num_inference_steps = 30;
    std::int64_t validation_resolution = 256;
    std::int64_t validation_seed = 42;

    double caption_dropout_probability = 0.1;
    bool allow_dataset_oversubscription = false;
    double resolution = 1024;
    ResolutionType resolution_type = ResolutionType::pixel_area;
    CaptionStrategy caption_strategy = CaptionStrategy::textfile;
    std::int64_t aspect_bucket_alignment = 64;
    BucketMode bucket_mode = BucketMode::nearest;
    std::int64_t aspect_bucket_rounding = 2;  ///< decimals of an aspect ratio in bucket_mode simpletuner, 1 to 9
    bool compress_disk_cache = false;
    std::int64_t dataloader_prefetch_qlen = 10;
    std::int64_t cache_memory_mib = 512;

    /// What an image data set gets for keys it does not have.
    [[nodiscard]] ImageDataset image_defaults() const;

    // What strata::run<config::TrainerConfig>() asks for.
    static constexpr std::string_view default_file = "config.json";  ///< without --config
    [[nodiscard]] static const Schema<TrainerConfig>& schema();
    [[nodiscard]] static TrainerConfig load(const std::filesystem::path& file, const Overrides& overrides);
};

[[nodiscard]] const Schema<TrainerConfig>& trainer_schema();

/// Reads a trainer configuration. Keys may be written with a leading "--".
///
///   overrides  what a command line says in place of the file
///
/// Throws Errc::unreadable_config, unknown_key, unsupported_key, bad_value, each naming file and key, or the flag.
[[nodiscard]] TrainerConfig load_trainer_config(const std::filesystem::path& file, const Overrides& overrides = {});

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/trainer_config.ipp>
#endif
