#pragma once
// strata/config/impl/simpletuner_keys.ipp - every key that SimpleTuner documents and strata's own table does not have.

#include <strata/config/impl/foreign_key_list.ipp>

namespace strata::config::detail {

/// What a run is made of, and where it runs.
inline void add_composition_keys(ForeignKeyList& list) {
    list.mapped("the update rule, and whether weights are kept in bf16 alone", {"optimizer"});
    list.mapped("keys `optimizer_...` of the update rule, by the rule's own names", {"optimizer_config"});
    list.mapped("the number formats; `no` is fp32", {"mixed_precision"});
    list.mapped("`Precision<PureBf16>`: weights and states in bf16 alone", {"pure_bf16"}, "false");
    list.mapped("`Recompute<Blocks>`, or with 2 `Recompute<EveryOther>`",
                {"gradient_checkpointing", "gradient_checkpointing_interval"});
    list.mapped("stage and offload, read as docs/config/deepspeed.md says: an object, its JSON as text, or a file",
                {"deepspeed_config"});
    list.mapped("the folder on disk of a `deepspeed_config` that offloads to `nvme` and names none",
                {"offload_param_path"});
    list.mapped("read as docs/config/accelerate.md says", {"accelerate_config"});
    list.mapped("`ZeroStage<3>`, or `ZeroStage<2>` where parameters stay whole",
                {"fsdp_enable", "fsdp_reshard_after_forward"}, "false");
    list.mapped("`OffloadTarget<Cpu>`", {"fsdp_cpu_offload"}, "false");
    list.other("stage 3 gathers a unit before it computes and gives it back after it; nothing else is chosen by name",
               {"fsdp_version", "fsdp_state_dict_type", "fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap",
                "fsdp_activation_checkpointing", "fsdp_cpu_ram_efficient_loading", "fsdp_limit_all_gathers",
                "fsdp_backward_prefetch", "fsdp_forward_prefetch", "fsdp_use_orig_params", "fsdp_sharding_strategy",
                "fsdp_sync_module_states", "fsdp_offload_params", "fsdp_*"});
    list.mapped("the number of processes, which `strata launch` or mpirun starts",
                {"num_processes", "num_machines", "machine_rank", "main_process_ip", "main_process_port"}, "1");
    list.other("`strata launch` and mpirun say where ranks run",
               {"accelerate_extra_args", "same_network", "local_rank", "rdzv_backend", "find_unused_parameters"},
               "false");
    list.refused("a sample is computed by one rank", {"context_parallel_size", "tensor_parallel_size"}, "0|1");
    list.other("a sample is computed by one rank", {"context_parallel_comm_strategy", "tensor_parallel_*"});
    list.other("strata is compiled ahead of time: nothing is traced or compiled while it trains",
               {"dynamo_backend", "dynamo_mode", "dynamo_fullgraph", "dynamo_dynamic",
                "dynamo_use_regional_compilation", "dynamo_wrapper", "dynamo_config", "validation_torch_compile",
                "validation_torch_compile_mode", "torch_compile", "dynamo_*"},
               "no|none|false");
    list.other("attention is libtorch's own, in the fastest form that it has for the device",
               {"attention_mechanism", "enable_xformers_memory_efficient_attention", "fuse_qkv_projections",
                "unet_attention_slice", "attention_slicing", "sageattention_usage", "enable_chunked_feed_forward",
                "feed_forward_chunk_size", "use_fused_qkv_projections"},
               "diffusers|false");
    list.other("matrices are multiplied in the number formats of `mixed_precision`",
               {"allow_tf32", "disable_tf32", "fp8_base"});
    list.other(
        "parameters that do not fit are kept by `deepspeed_config`, in host memory or on disk",
        {"enable_group_offload", "group_offload_type", "group_offload_blocks_per_group", "group_offload_use_stream",
         "group_offload_to_disk_path", "enable_model_cpu_offload", "musubi_blocks_to_swap", "musubi_block_swap_device",
         "ramtorch", "offload_during_startup", "offload_during_save", "delete_model_after_load",
         "fully_unload_text_encoder", "keep_vae_loaded", "musubi_*", "ramtorch_*", "group_offload_*"},
        "false|0");
    list.other("what is computed again is a whole block, and nothing of it is kept elsewhere",
               {"gradient_checkpointing_backend", "gradient_checkpointing_segment_stride",
                "gradient_checkpointing_offload_attention", "gradient_checkpointing_offload_prefetch",
                "gradient_checkpointing_*"},
               "torch");
    list.other("gradients are freed as soon as they are reduced", {"set_grads_to_none"});
    list.mapped("`Update<InBackward>`, where a step is one micro-batch and nothing needs all gradients at once",
                {"optimizer_release_gradients"}, "false");
    list.mapped("`OffloadTarget<Cpu, Gradients>`, from stage 2 on where state is off the device too",
                {"optimizer_offload_gradients"}, "false");
    list.other("where state lies is said by `deepspeed_config`", {"optimizer_cpu_offload_method", "fuse_optimizer"},
               "none|false");
    list.other("sums are in fp32, in a fixed order", {"gradient_precision"}, "unmodified");
    list.other("batches and rates follow from `seed` alone", {"seed_for_each_device"});
    list.other("the rate is `learning_rate`, whatever the number of ranks", {"prodigy_steps"});
    list.refused("the rate is `learning_rate` as it is written: multiply it yourself", {"lr_scale", "lr_scale_sqrt"},
                 "false");
}

/// What a run reads, and how.
inline void add_data_keys(ForeignKeyList& list) {
    list.other("as many threads work as there are cores; `threads` and `decode_threads` say otherwise",
               {"aspect_bucket_worker_count", "write_batch_size", "read_batch_size", "image_processing_batch_size",
                "dataloader_prefetch", "max_workers", "torch_num_threads", "enable_multiprocessing",
                "dataloader_num_workers"});
    list.other(
        "a picture is encoded whole, in the number format of `vae_dtype`",
        {"vae_enable_slicing", "vae_enable_tiling", "vae_enable_patch_conv", "vae_enable_temporal_roll", "vae_*"},
        "false|default");
    list.other("damaged cache entries are named and made again by themselves", {"vae_cache_scan_behaviour"});
    list.other("what is found out about pictures is kept while it is found",
               {"metadata_update_interval", "aspect_bucket_disable_rebuild"});
    list.other("captions are embedded before the first step", {"text_cache_ondemand", "text_cache_disable"}, "false");
    list.other("no bucket is removed silently: `small_buckets` says what becomes of one that is too small",
               {"disable_bucket_pruning"});
    list.other("what was cached with other settings is made anew by itself", {"override_dataset_config"}, "false");
    list.other("a picture that is missing is an error that names it", {"ignore_missing_files"}, "false");
    list.other("each data set names its own caches in the dataset list",
               {"cache_dir", "cache_dir_text", "cache_dir_vae", "data_backend", "instance_data_dir", "csv_*",
                "parquet_caption_column", "parquet_filename_column", "parquet_fallback_caption_column"});
    list.other("the connections of a bucket are `aws_max_pool_connections` of its data set",
               {"aws_max_pool_connections", "aws_*"});
    list.other("pictures that are too small stay where they are", {"delete_unwanted_images"}, "false");
    list.other("the number of steps is `max_train_steps` or follows from `num_train_epochs`, whatever the data became",
               {"ignore_final_epochs", "strict_epoch_limit"});
    list.other("`strata data` prints what data sets hold",
               {"debug_aspect_buckets", "debug_dataset_loader", "print_filenames", "print_sampler_statistics"},
               "false");
    list.other("messages have one level of detail", {"accelerator_cache_clear_interval", "log_level"});
    list.other("still pictures are made of captions alone",
               {"validation_num_video_frames", "validation_audio_duration", "validation_audio_only",
                "validation_lyrics", "validation_audio_*", "audio_*", "video_*"});
}

/// What a run leaves behind, and whom it tells.
inline void add_output_keys(ForeignKeyList& list) {
    list.mapped("`checkpoint_step_interval`", {"checkpointing_steps"});
    list.mapped("`validation_step_interval`", {"validation_steps"});
    list.mapped("one of `validation_prompts`", {"validation_prompt"});
    list.mapped("`validation_prompts`: a JSON file of names and prompts", {"user_prompt_library"});
    list.mapped("`true` leaves `validation_prompts` empty", {"validation_disable"}, "false");
    list.refused(
        "a run continues from the newest checkpoint in `output_dir`; move newer ones away to begin before them",
        {"resume_from_checkpoint"}, "latest");
    list.other("checkpoints appear whole or not at all", {"checkpointing_use_tempdir"});
    list.other("checkpoints are made every `checkpoint_step_interval` steps, and the newest stay",
               {"checkpoint_epoch_interval", "checkpointing_rolling_steps", "checkpoints_rolling_total_limit"}, "0");
    list.other("a checkpoint that is damaged is named and not used", {"delete_invalid_checkpoints"}, "false");
    list.other("room for a checkpoint is kept on the disk (`reserve_checkpoint_room`)",
               {"disk_low_threshold", "disk_low_action", "disk_low_script"});
    list.other("metrics go to metrics.jsonl and report.html in `output_dir`",
               {"report_to", "tracker_project_name", "tracker_run_name", "tracker_image_layout", "logging_dir",
                "webhook_reporting_interval", "custom_tracker", "message_prefix", "tracker_*", "webhook_*"},
               "none");
    list.other("nothing is sent anywhere: checkpoints and weights are in `output_dir`",
               {"push_to_hub", "push_to_hub_background", "push_checkpoints_to_hub", "publishing_config", "hub_model_id",
                "model_card_private", "model_card_safe_for_work", "model_card_note", "modelspec_comment",
                "enable_watermark", "model_card_*", "hub_*"},
               "false");
    list.other("no program is started by a run",
               {"post_upload_script", "post_checkpoint_script", "validation_external_script",
                "validation_external_background", "validation_method"},
               "simpletuner-local|false");
    list.other(
        "samples are drawn of `validation_prompts` alone, all ranks draw their share, and the seed is `validation_seed`",
        {"validation_prompt_library", "validation_using_datasets", "validation_input", "validation_multigpu",
         "validation_disable_unconditional", "validation_randomize", "validation_seed_source",
         "validation_no_cfg_until_timestep", "validation_lycoris_strength", "validation_stitch_input_location",
         "validation_preview", "validation_preview_steps", "validation_adapter_*", "validation_guidance_*",
         "validation_*"},
        "false|0|0.0|1|1.0|batch-parallel|single-gpu");
    list.other("no score is computed of samples; data sets with `dataset_type` eval have their loss",
               {"evaluation_type"}, "none");
    list.other(
        "every data set with `dataset_type` eval has its loss every `eval_steps_interval`, over all of its pictures, at the noise "
        "and timesteps that the model gives; a set that is not wanted is `disabled`",
        {"num_eval_images", "eval_epoch_interval", "eval_timesteps", "eval_dataset_pooling", "eval_dataset_id",
         "eval_loss_disable", "eval_*"},
        "false");
    list.other("the moving average is updated where it is kept, in one pass", {"ema_cpu_only", "ema_foreach_disable"});
    list.other("every check stays: what is refused cannot be trained", {"i_know_what_i_am_doing"}, "false");
    list.other("a file says all that it says: nothing is merged into it", {"merge_environment_config"}, "false");
}

}  // namespace strata::config::detail
