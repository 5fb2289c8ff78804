#pragma once
// strata/config/impl/simpletuner_learning_keys.ipp - SimpleTuner's keys about what is trained, and against what.

#include <strata/config/impl/foreign_key_list.ipp>

namespace strata::config::detail {

/// What is trained and against what.
inline void add_learning_keys(ForeignKeyList& list) {
    list.refused("an adapter is a LoRA with two matrices, a DoRA, or what `lora_type` lycoris says", {"peft_lora_mode"},
                 "standard");
    list.other("only `peft_lora_mode` singlora has it", {"singlora_ramp_up_steps"}, "0");
    list.refused("there are no data sets of opposites", {"slider_lora_target"}, "false");
    list.refused("a LoKr begins with zeros in one of its factors", {"init_lokr_norm"}, "");
    list.refused("one adapter is trained, and none besides is applied", {"assistant_lora_path"}, "");
    list.other("one adapter is trained, and none besides is applied",
               {"disable_assistant_lora", "assistant_lora_weight", "assistant_lora_strength",
                "assistant_lora_inference_strength", "assistant_lora_*"},
               "true|false");
    list.other("steps are counted from 0, and the average begins with the adapter itself",
               {"init_lora_step", "init_lora_ema"}, "0");
    list.other("the layers of an adapter are `peft_lora_target_modules`", {"lora_target", "acestep_lora_target"});
    list.other("an adapter is all that its keys say", {"tlora_*", "lora_*", "peft_*", "lycoris_*"}, "false");
    list.other(
        "text encoders compute in `text_encoder_dtype`: they are in memory while captions are embedded, and gone then",
        {"text_encoder_1_precision", "text_encoder_2_precision", "text_encoder_3_precision", "text_encoder_4_precision",
         "text_encoder_5_precision"},
        "no_change");
    list.other("weights are quantised unit by unit while they are read, and computed with in the run's number format",
               {"quantize_via", "quantization_config", "quantize_activations", "base_model_default_dtype", "sdnq_*"},
               "cpu|accelerator|pipeline|false|bf16");
    list.refused("text encoders stay as they are: captions are embedded once",
                 {"train_text_encoder", "text_encoder_training"}, "false");
    list.other("text encoders are not trained",
               {"text_encoder_lr", "freeze_encoder", "freeze_encoder_before", "freeze_encoder_after",
                "freeze_encoder_strategy", "save_text_encoder", "text_encoder_limit"});
    list.refused("every weight is trained", {"layer_freeze_strategy"}, "none");
    list.refused("strata trains on pictures and captions, without control pictures",
                 {"controlnet", "control", "grounding", "max_grounding_entities"}, "false|0");
    list.other("only control pictures have these",
               {"controlnet_custom_config", "controlnet_model_name_or_path", "conditioning_multidataset_sampling",
                "pretrained_grounding_model_name_or_path", "controlnet_*"});
    list.refused("a model is trained on pictures, and not after a teacher", {"distillation_method"}, "none");
    list.other("only distillation has it", {"distillation_config"});
    list.refused("all tokens go through all blocks", {"tread_config"}, "");
    list.refused("the loss is the mean square of what the model's own objective asks for", {"loss_type"}, "l2|mse");
    list.other("only other losses than `l2` have these", {"huber_schedule", "huber_c"});
    list.refused("steps of noise have equal weights in the loss, or those of `snr_gamma`",
                 {"use_soft_min_snr", "masked_loss_probability", "diff2flow_enabled", "diff2flow_loss"}, "0|false");
    list.other("steps of noise have equal weights in the loss, or those of `snr_gamma`",
               {"soft_min_snr_sigma_data", "snr_weight"});
    list.other("`input_perturbation` changes the noise of every step", {"input_perturbation_steps"});
    list.other("timesteps are trained alike, and drawn at as the model's scheduler_config.json says",
               {"training_scheduler_timestep_spacing", "inference_scheduler_timestep_spacing"});
    list.refused("steps of noise are drawn as the model's own objective says", {"timestep_bias_strategy"}, "none");
    list.refused("steps of noise are drawn as the model's own objective says",
                 {"flow_use_beta_schedule", "flux_fast_schedule"}, "false");
    list.other("steps of noise are drawn as the model's own objective says",
               {"flow_beta_schedule_alpha", "flow_beta_schedule_beta", "flow_timesteps", "flow_custom_timesteps",
                "sd3_schedule_shift", "audio_flow_schedule_shift", "timestep_bias_begin", "timestep_bias_end",
                "timestep_bias_multiplier", "timestep_bias_portion", "disable_segmented_timestep_sampling",
                "timestep_*", "flow_*"});
    list.refused("the model trains on its data alone, without a second network beside it",
                 {"crepa_enabled", "urepa_enabled", "layersync_enabled", "twinflow_enabled"}, "false");
    list.other("only a second network beside the model has these", {"crepa_*", "urepa_*", "layersync_*", "twinflow_*"});
    list.refused("a sample is one step of noise", {"scheduled_sampling_max_step_offset"}, "0");
    list.other("only rollouts have these", {"scheduled_sampling_*"});
    list.refused("one model is trained for all steps of noise", {"refiner_training"}, "false");
    list.other("only a series of models has these", {"refiner_training_invert_schedule", "refiner_training_strength",
                                                     "sdxl_refiner_uses_full_range", "data_aesthetic_score"});
    list.other("the model is as its own options say", {"t5_padding",
                                                       "sd3_clip_uncond_behaviour",
                                                       "sd3_t5_uncond_behaviour",
                                                       "hidream_use_load_balancing_loss",
                                                       "hidream_load_balancing_loss_weight",
                                                       "sana_complex_human_instruction",
                                                       "custom_text_encoder_intermediary_layers",
                                                       "sla_config",
                                                       "framerate",
                                                       "flux_*",
                                                       "sd3_*",
                                                       "hidream_*",
                                                       "sana_*",
                                                       "ltx_*",
                                                       "ltx2_*",
                                                       "wan_*",
                                                       "cosmos3_*",
                                                       "cosmos_*",
                                                       "minimax_*",
                                                       "deepfloyd_*",
                                                       "pixart_*",
                                                       "sdxl_*",
                                                       "kandinsky5_*",
                                                       "hunyuan_*",
                                                       "qwen_*",
                                                       "omnigen_*",
                                                       "longcat_*",
                                                       "chroma_*",
                                                       "auraflow_*",
                                                       "lumina2_*",
                                                       "z_image_*",
                                                       "ace_step_*",
                                                       "heartmula_*",
                                                       "krea_*",
                                                       "anima_*",
                                                       "xm_*",
                                                       "acestep_*",
                                                       "zlab_*",
                                                       "ernie_*"});
    list.other("weights come from the folder that `pretrained_model_name_or_path` names",
               {"pretrained_gemma_model_name_or_path", "revision", "variant", "hub_token", "local_files_only",
                "trust_remote_code", "pretrained_*"},
               "false");
}

}  // namespace strata::config::detail
