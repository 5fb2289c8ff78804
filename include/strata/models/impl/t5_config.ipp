#pragma once
// strata/models/impl/t5_config.ipp - the sizes of a T5 from its config.json.

#include <algorithm>

#include <strata/models/impl/model_config.ipp>
#include <strata/models/impl/transformers_config.ipp>
#include <strata/models/t5_encoder.hpp>

namespace strata::models {

namespace detail {

inline T5Options t5_options(ModelConfig config) {
    T5Options options;
    one_architecture(config, {"T5EncoderModel", "T5ForConditionalGeneration", "T5Model"});
    config.only("model_type", "t5");
    options.vocabulary = config.whole("vocab_size", 1, 32128);
    options.width = config.whole("d_model", 1, 512);
    options.head_width = config.whole("d_kv", 1, 64);
    options.feed_forward_width = config.whole("d_ff", 1, 2048);
    options.blocks = config.whole("num_layers", 1, 6);
    options.heads = config.whole("num_heads", 1, 8);
    options.distance_buckets = config.whole("relative_attention_num_buckets", 4, 32);
    options.longest_distance = config.whole("relative_attention_max_distance", 1, 128);
    if (options.longest_distance <= options.distance_buckets / 4)
        config.refuse("relative_attention_max_distance", "leaves no distances for the ranges behind the single ones");
    options.epsilon = config.number("layer_norm_epsilon", 1e-6);
    if (config.has("feed_forward_proj")) {
        config.only("feed_forward_proj", "gated-gelu");
    } else {  // what the class takes then is a T5 of version 1.0
        config.refuse("feed_forward_proj", "is missing, and T5Encoder implements gated-gelu alone, T5 v1.1");
    }
    config.only("is_gated_act", "true");
    config.only("dense_act_fn", "gelu_new");
    config.pass_over({"dropout_rate", "classifier_dropout", "initializer_factor", "num_decoder_layers", "n_positions"});
    pass_over_what_is_not_the_model(config);
    config.finish();
    return options;
}

}  // namespace detail

STRATA_INLINE T5Options read_t5_config(const std::filesystem::path& file) {
    return detail::t5_options(ModelConfig{file, "T5Encoder"});
}

STRATA_INLINE T5Options parse_t5_config(std::string_view json, std::string source) {
    return detail::t5_options(ModelConfig{json, std::move(source), "T5Encoder"});
}

}  // namespace strata::models
