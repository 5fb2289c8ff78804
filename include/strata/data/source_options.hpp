#pragma once
// strata/data/source_options.hpp - SourceOptions: how data sets are used.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include <c10/core/Device.h>

#include <strata/config/trainer_config.hpp>
#include <strata/core/inline.hpp>
#include <strata/datasets/discovered.hpp>
#include <strata/http/retry.hpp>
#include <strata/pictures/framing.hpp>

namespace strata::data {

/// How data sets are used; the names are those of config::TrainerConfig.
struct SourceOptions {
    std::int64_t train_batch_size = 4;  ///< samples of one rank in one micro-batch, of data sets without their own
    std::int64_t gradient_accumulation_steps = 1;
    /// For a set that is evaluated: an epoch shows every sample exactly once, whatever its set says of repeats,
    /// probability and epochs; last batches of a bucket are short. What is drawn for a sample (its caption, crop and
    /// training size) is the same on any number of ranks.
    bool each_once = false;
    std::uint64_t seed = 42;
    std::int64_t aspect_bucket_alignment = 64;  ///< pixels; a multiple of the recipe's alignment()
    config::BucketMode bucket_mode = config::BucketMode::nearest;
    std::int64_t aspect_bucket_rounding = 2;  ///< decimals of an aspect ratio in bucket_mode simpletuner
    bool trains_adapter = false;              ///< false: data sets with is_regularisation_data are refused
    double caption_dropout_probability = 0.1;
    bool allow_dataset_oversubscription = false;
    config::DataBackendSampling data_backend_sampling = config::DataBackendSampling::auto_weighting;
    config::OnBrokenSample on_broken_sample = config::OnBrokenSample::stop;
    bool compress_disk_cache = false;
    std::int64_t vae_batch_size = 4;                            ///< pictures that are encoded together, >= 1
    std::int64_t text_encoder_batch_size = 4;                   ///< captions that are encoded together, >= 1
    std::int64_t prefetch_batches = 10;                         ///< batches made ahead
    std::int64_t cache_memory_bytes = std::int64_t{512} << 20;  ///< of cached tensors kept in memory by this rank
    /// Of picture files and pictures decoded at the same time; a larger one alone.
    std::int64_t decode_memory_bytes = std::int64_t{2} << 30;
    std::int64_t threads = 0;                 ///< of this rank; 0: its part of the host's cores
    std::int64_t decode_threads = 0;          ///< of these, that decode at the same time; 0: all of them
    at::Device device = at::kCPU;             ///< that encoders compute on
    http::RetryOptions retry = {};            ///< of requests to buckets
    std::filesystem::path index_folder = {};  ///< what is found out about pictures is kept here; empty: it is not

    /// Called from one thread at a time: while pictures are looked for, as DiscoverOptions say; then what, entries of this
    /// rank's share that are done, and all of its share: "latents looked up", "latents", "captions looked up", "captions".
    /// The second and the fourth are those that are encoded, and are left out where nothing is.
    std::function<void(std::string_view what, std::int64_t done, std::int64_t total)> progress = {};

    /// Called with a line that is to be shown, by one rank of each machine, from any thread, one at a time: a bucket's
    /// server fails, or answers again.
    std::function<void(const std::string& line)> note = {};

    /// Asked between pictures and between cached items, from one thread at a time: true ends prepare() with
    /// Errc::interrupted on all ranks within seconds, or when items under way are done. Must not throw.
    std::function<bool()> stopped = {};

    [[nodiscard]] static SourceOptions from(const config::TrainerConfig& config);
    [[nodiscard]] pictures::BucketSettings buckets() const {
        return {aspect_bucket_alignment, bucket_mode, aspect_bucket_rounding};
    }
};

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/source_options.ipp>
#endif
