#pragma once
// strata/data/impl/source_options.ipp - options from a configuration.

#include <chrono>

#include <strata/data/source_options.hpp>

namespace strata::data {

STRATA_INLINE SourceOptions SourceOptions::from(const config::TrainerConfig& config) {
    SourceOptions options;
    options.train_batch_size = config.train_batch_size;
    options.gradient_accumulation_steps = config.options.engine.gradient_accumulation_steps;
    options.seed = config.options.seed;
    options.aspect_bucket_alignment = config.aspect_bucket_alignment;
    options.bucket_mode = config.bucket_mode;
    options.aspect_bucket_rounding = config.aspect_bucket_rounding;
    options.trains_adapter = config.adapter.is_on();
    options.caption_dropout_probability = config.caption_dropout_probability;
    options.allow_dataset_oversubscription = config.allow_dataset_oversubscription;
    options.on_broken_sample = config.on_broken_sample;
    options.compress_disk_cache = config.compress_disk_cache;
    options.vae_batch_size = config.vae_batch_size;
    options.text_encoder_batch_size = config.text_encoder_batch_size;
    options.threads = config.threads;
    options.decode_threads = config.decode_threads;
    options.prefetch_batches = config.dataloader_prefetch_qlen;
    options.cache_memory_bytes = config.cache_memory_mib << 20;
    options.data_backend_sampling = config.data_backend_sampling;
    options.retry.patience = std::chrono::seconds{config.store_retry_seconds};
    options.index_folder = config.output_dir / "index";
    return options;
}

}  // namespace strata::data
