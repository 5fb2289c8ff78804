#pragma once
// strata/models/impl/clip_text_config.ipp - the sizes of a text encoder of CLIP from its config.json.

#include <strata/models/clip_text.hpp>
#include <strata/models/impl/model_config.ipp>
#include <strata/models/impl/transformers_config.ipp>

namespace strata::models {

namespace detail {

inline ClipTextOptions clip_text_options(ModelConfig config) {
    ClipTextOptions options;
    options.has_projection =
        one_architecture(config, {"CLIPTextModel", "CLIPTextModelWithProjection"}) == "CLIPTextModelWithProjection";
    config.only("model_type", "clip_text_model");
    options.vocabulary = config.whole("vocab_size", 1, 49408);
    options.width = config.whole("hidden_size", 1, 512);
    options.feed_forward_width = config.whole("intermediate_size", 1, 2048);
    options.blocks = config.whole("num_hidden_layers", 2, 12);
    options.heads = config.whole("num_attention_heads", 1, 8);
    options.longest = config.whole("max_position_embeddings", 1, 77);
    options.projection_width = config.whole("projection_dim", 1, 512);
    if (options.width % options.heads != 0)
        config.refuse("num_attention_heads", "is " + std::to_string(options.heads) + ", and 'hidden_size' " +
                                                 std::to_string(options.width) + " is no multiple of it");
    options.epsilon = config.number("layer_norm_eps", 1e-5);
    options.eos = config.whole("eos_token_id", 0, 49407);
    const std::string activation = config.text("hidden_act", "quick_gelu");
    if (activation == "gelu") {
        options.activation = ClipActivation::gelu;
    } else if (activation != "quick_gelu") {
        config.refuse("hidden_act", "is \"" + activation + "\", and ClipText implements quick_gelu and gelu");
    }
    config.pass_over({"attention_dropout", "dropout", "initializer_factor"});
    pass_over_what_is_not_the_model(config);
    config.finish();
    return options;
}

}  // namespace detail

STRATA_INLINE ClipTextOptions read_clip_text_config(const std::filesystem::path& file) {
    return detail::clip_text_options(ModelConfig{file, "ClipText"});
}

STRATA_INLINE ClipTextOptions parse_clip_text_config(std::string_view json, std::string source) {
    return detail::clip_text_options(ModelConfig{json, std::move(source), "ClipText"});
}

}  // namespace strata::models
