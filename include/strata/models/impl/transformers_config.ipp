#pragma once
// strata/models/impl/transformers_config.ipp - what the config.json of every model of transformers has besides the
// model.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <strata/models/impl/model_config.ipp>

namespace strata::models::detail {

/// The one of `known` that "architectures" names; the first where the file does not say. Refuses others.
inline std::string one_architecture(ModelConfig& config, std::initializer_list<std::string_view> known) {
    if (!config.has("architectures")) return std::string{*known.begin()};
    const std::vector<std::string> named = config.texts("architectures");
    for (const std::string& name : named)
        if (std::find(known.begin(), known.end(), name) != known.end()) return name;
    std::string all;
    for (const std::string_view name : known) all += (all.empty() ? "" : ", ") + std::string{name};
    config.refuse("architectures", "names none of " + all);
    return std::string{*known.begin()};
}

/// Keys about the file, about generation, and about tokens, which a tokenizer knows.
inline void pass_over_what_is_not_the_model(ModelConfig& config) {
    config.pass_over({"architectures", "transformers_version", "torch_dtype", "dtype", "use_cache", "output_past",
                      "tie_word_embeddings", "is_encoder_decoder", "bos_token_id", "pad_token_id",
                      "decoder_start_token_id", "eos_token_id", "initializer_range", "gradient_checkpointing",
                      "task_specific_params", "tokenizer_class"});
}

}  // namespace strata::models::detail
