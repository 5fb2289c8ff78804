#pragma once
// tests/support/made_pipeline.hpp - whole tiny models in the folders that the ecosystem publishes models in.
//
//   write_pipeline(folder, PipelineKind::flux);
//
// Weights are random, those of Flux in two files. A picture has 4 latent channels for 8 x 8 pixels. Captions are any:
// made_tokenizers.hpp has words for some, and the others are read letter by letter.

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <strata/storage/atomic_file.hpp>

#include "made_models.hpp"
#include "made_tokenizers.hpp"

namespace strata_test {

enum class PipelineKind : std::uint8_t { flux, sdxl, sd15 };

namespace made {

using nlohmann::json;
namespace fs = std::filesystem;

inline void write_json(const fs::path& file, const json& object) {
    strata::storage::write_file(file, object.dump(2) + "\n");
}

/// A CLIP of `width` and 2 layers; with a projection if that is of a width.
inline void write_clip(const fs::path& folder, std::int64_t width, std::int64_t projection = 0) {
    const json config{{"architectures", {projection > 0 ? "CLIPTextModelWithProjection" : "CLIPTextModel"}},
                      {"attention_dropout", 0.0},
                      {"bos_token_id", 0},
                      {"eos_token_id", 2},
                      {"hidden_act", projection > 0 ? "gelu" : "quick_gelu"},
                      {"hidden_size", width},
                      {"intermediate_size", 2 * width},
                      {"layer_norm_eps", 1e-5},
                      {"max_position_embeddings", 77},
                      {"model_type", "clip_text_model"},
                      {"num_attention_heads", 2},
                      {"num_hidden_layers", 2},
                      {"pad_token_id", 1},
                      {"projection_dim", projection > 0 ? projection : width},
                      {"torch_dtype", "float32"},
                      {"vocab_size", cats_and_dogs().vocabulary.size()}};
    write_json(folder / "config.json", config);
    write_random_weights(folder / "model.safetensors", clip_shapes(config));
}

inline void write_clip_tokenizer(const fs::path& folder, const std::string& pad = "<|endoftext|>") {
    cats_and_dogs().write(folder);
    write_json(folder / "tokenizer_config.json", {{"bos_token", "<|startoftext|>"},
                                                  {"eos_token", "<|endoftext|>"},
                                                  {"model_max_length", 77},
                                                  {"pad_token", pad},
                                                  {"tokenizer_class", "CLIPTokenizer"},
                                                  {"unk_token", "<|endoftext|>"}});
    write_json(folder / "special_tokens_map.json", {{"bos_token", "<|startoftext|>"},
                                                    {"eos_token", "<|endoftext|>"},
                                                    {"pad_token", pad},
                                                    {"unk_token", "<|endoftext|>"}});
}

inline void write_t5(const fs::path& folder, std::int64_t width) {
    const json config{{"architectures", {"T5EncoderModel"}},
                      {"d_ff", 2 * width},
                      {"d_kv", 8},
                      {"d_model", width},
                      {"dropout_rate", 0.1},
                      {"feed_forward_proj", "gated-gelu"},
                      {"layer_norm_epsilon", 1e-6},
                      {"model_type", "t5"},
                      {"num_heads", 2},
                      {"num_layers", 2},
                      {"relative_attention_max_distance", 128},
                      {"relative_attention_num_buckets", 32},
                      {"tie_word_embeddings", false},
                      {"vocab_size", 112}};
    write_json(folder / "config.json", config);
    write_random_shards(folder, "model", t5_shapes(config));
}

inline void write_t5_tokenizer(const fs::path& folder) {
    strata::storage::write_file(folder / "spiece.model", small_pieces().bytes());
    write_json(folder / "tokenizer_config.json",
               {{"model_max_length", 512}, {"tokenizer_class", "T5Tokenizer"}, {"pad_token", "<pad>"}});
}

inline json autoencoder_config(PipelineKind kind) {
    json config{{"_class_name", "AutoencoderKL"},
                {"_diffusers_version", "0.30.0"},
                {"act_fn", "silu"},
                {"block_out_channels", {8, 8, 8, 16}},
                {"down_block_types", json::array()},
                {"in_channels", 3},
                {"latent_channels", 4},
                {"layers_per_block", 1},
                {"norm_num_groups", 4},
                {"out_channels", 3},
                {"sample_size", 64},
                {"up_block_types", json::array()}};
    for (int i = 0; i < 4; ++i) {
        config["down_block_types"].push_back("DownEncoderBlock2D");
        config["up_block_types"].push_back("UpDecoderBlock2D");
    }
    if (kind == PipelineKind::sdxl) config["scaling_factor"] = 0.13025;
    if (kind == PipelineKind::flux)
        config.update({{"scaling_factor", 0.3611},
                       {"shift_factor", 0.1159},
                       {"use_quant_conv", false},
                       {"use_post_quant_conv", false}});
    return config;
}

inline json flux_config() {
    return {{"_class_name", "FluxTransformer2DModel"},
            {"_diffusers_version", "0.30.0"},
            {"attention_head_dim", 16},
            {"axes_dims_rope", {4, 6, 6}},
            {"guidance_embeds", true},
            {"in_channels", 16},
            {"joint_attention_dim", 32},
            {"num_attention_heads", 2},
            {"num_layers", 2},
            {"num_single_layers", 2},
            {"patch_size", 1},
            {"pooled_projection_dim", 24}};
}

inline json unet_config(PipelineKind kind) {
    json config{{"_class_name", "UNet2DConditionModel"},
                {"_diffusers_version", "0.30.0"},
                {"act_fn", "silu"},
                {"attention_head_dim", 2},
                {"block_out_channels", {16, 32}},
                {"center_input_sample", false},
                {"cross_attention_dim", 24},
                {"flip_sin_to_cos", true},
                {"freq_shift", 0},
                {"in_channels", 4},
                {"layers_per_block", 1},
                {"norm_eps", 1e-5},
                {"norm_num_groups", 8},
                {"out_channels", 4},
                {"sample_size", 8}};
    if (kind == PipelineKind::sd15) {
        config["down_block_types"] = {"CrossAttnDownBlock2D", "DownBlock2D"};
        config["up_block_types"] = {"UpBlock2D", "CrossAttnUpBlock2D"};
        return config;
    }
    config["down_block_types"] = {"DownBlock2D", "CrossAttnDownBlock2D"};
    config["up_block_types"] = {"CrossAttnUpBlock2D", "UpBlock2D"};
    config.update({{"addition_embed_type", "text_time"},
                   {"addition_time_embed_dim", 8},
                   {"projection_class_embeddings_input_dim", 6 * 8 + 20},
                   {"transformer_layers_per_block", {1, 2}},
                   {"use_linear_projection", true}});
    return config;
}

inline json scheduler_config(PipelineKind kind) {
    if (kind == PipelineKind::flux)
        return {{"_class_name", "FlowMatchEulerDiscreteScheduler"},
                {"_diffusers_version", "0.30.0"},
                {"base_image_seq_len", 256},
                {"base_shift", 0.5},
                {"max_image_seq_len", 4096},
                {"max_shift", 1.15},
                {"num_train_timesteps", 1000},
                {"shift", 3.0},
                {"use_dynamic_shifting", true}};
    json config{{"_class_name", kind == PipelineKind::sdxl ? "EulerDiscreteScheduler" : "PNDMScheduler"},
                {"_diffusers_version", "0.30.0"},
                {"beta_end", 0.012},
                {"beta_schedule", "scaled_linear"},
                {"beta_start", 0.00085},
                {"clip_sample", false},
                {"num_train_timesteps", 1000},
                {"set_alpha_to_one", false},
                {"skip_prk_steps", true},
                {"steps_offset", 1},
                {"trained_betas", nullptr}};
    if (kind == PipelineKind::sdxl) config.update({{"prediction_type", "epsilon"}, {"timestep_spacing", "leading"}});
    return config;
}

inline json model_index(PipelineKind kind) {
    const auto of = [](const char* library, const char* name) { return json{library, name}; };
    json index{{"_diffusers_version", "0.30.0"},
               {"scheduler", of("diffusers", scheduler_config(kind).at("_class_name").get<std::string>().c_str())},
               {"text_encoder", of("transformers", "CLIPTextModel")},
               {"tokenizer", of("transformers", "CLIPTokenizer")},
               {"vae", of("diffusers", "AutoencoderKL")}};
    switch (kind) {
        case PipelineKind::flux:
            index.update({{"_class_name", "FluxPipeline"},
                          {"text_encoder_2", of("transformers", "T5EncoderModel")},
                          {"tokenizer_2", of("transformers", "T5TokenizerFast")},
                          {"transformer", of("diffusers", "FluxTransformer2DModel")}});
            break;
        case PipelineKind::sdxl:
            index.update({{"_class_name", "StableDiffusionXLPipeline"},
                          {"force_zeros_for_empty_prompt", true},
                          {"text_encoder_2", of("transformers", "CLIPTextModelWithProjection")},
                          {"tokenizer_2", of("transformers", "CLIPTokenizer")},
                          {"unet", of("diffusers", "UNet2DConditionModel")}});
            break;
        case PipelineKind::sd15:
            index.update({{"_class_name", "StableDiffusionPipeline"},
                          {"feature_extractor", {nullptr, nullptr}},
                          {"requires_safety_checker", false},
                          {"safety_checker", {nullptr, nullptr}},
                          {"unet", of("diffusers", "UNet2DConditionModel")}});
            break;
    }
    return index;
}

/// All but the trained model and its autoencoder. Tokens are 32 wide and captions 24 for Flux, 8 + 16 and 20 for SDXL;
/// tokens 24 for SD 1.5.
inline void write_surroundings(const fs::path& folder, PipelineKind kind) {
    write_json(folder / "model_index.json", model_index(kind));
    write_json(folder / "scheduler/scheduler_config.json", scheduler_config(kind));
    write_clip(folder / "text_encoder", kind == PipelineKind::sdxl ? 8 : 24);
    write_clip_tokenizer(folder / "tokenizer");
    if (kind == PipelineKind::flux) {
        write_t5(folder / "text_encoder_2", 32);
        write_t5_tokenizer(folder / "tokenizer_2");
    } else if (kind == PipelineKind::sdxl) {
        write_clip(folder / "text_encoder_2", 16, 20);
        write_clip_tokenizer(folder / "tokenizer_2", "!");
    }
}

}  // namespace made

/// The folder of what is trained.
inline std::string trained_part(PipelineKind kind) { return kind == PipelineKind::flux ? "transformer" : "unet"; }

/// A pipeline with random weights, the same each time.
inline void write_pipeline(const std::filesystem::path& folder, PipelineKind kind) {
    made::write_surroundings(folder, kind);
    const auto autoencoder = made::autoencoder_config(kind);
    made::write_json(folder / "vae/config.json", autoencoder);
    write_random_weights(folder / "vae/diffusion_pytorch_model.safetensors", autoencoder_shapes(autoencoder));
    const auto trained = folder / trained_part(kind);
    if (kind == PipelineKind::flux) {
        made::write_json(trained / "config.json", made::flux_config());
        write_random_shards(trained, "diffusion_pytorch_model", flux_shapes(made::flux_config()));
    } else {
        made::write_json(trained / "config.json", made::unet_config(kind));
        write_random_weights(trained / "diffusion_pytorch_model.safetensors", unet_shapes(made::unet_config(kind)));
    }
}

}  // namespace strata_test
