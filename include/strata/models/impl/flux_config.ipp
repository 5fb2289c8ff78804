#pragma once
// strata/models/impl/flux_config.ipp - FluxOptions of a config.json.

#include <utility>

#include <strata/models/flux_transformer.hpp>
#include <strata/models/model_config.hpp>

namespace strata::models {

namespace detail {

inline FluxOptions flux_options_of(ModelConfig config) {
    FluxOptions options;
    config.is_class("FluxTransformer2DModel");
    config.only("patch_size", "1");
    options.token_values = config.whole("in_channels", 1, 64);
    options.output_values = config.whole("out_channels", 1, options.token_values);
    options.double_blocks = config.whole("num_layers", 0, 19);
    options.single_blocks = config.whole("num_single_layers", 0, 38);
    options.heads = config.whole("num_attention_heads", 1, 24);
    options.text_width = config.whole("joint_attention_dim", 1, 4096);
    options.pooled_width = config.whole("pooled_projection_dim", 1, 768);
    options.has_guidance = config.flag("guidance_embeds", false);
    const std::int64_t head = config.whole("attention_head_dim", 2, 128);
    const std::vector<std::int64_t> axes = config.wholes("axes_dims_rope", 2, std::vector<std::int64_t>{16, 56, 56});
    if (axes.size() != 3) {
        config.refuse("axes_dims_rope", "has " + std::to_string(axes.size()) + " axes, and tokens of Flux have 3 ids");
    } else {
        options.rotary_axes = {axes[0], axes[1], axes[2]};
        if (axes[0] % 2 != 0 || axes[1] % 2 != 0 || axes[2] % 2 != 0)
            config.refuse("axes_dims_rope", "has an axis that is odd: pairs of numbers turn together");
        if (options.head_width() != head)
            config.refuse("attention_head_dim", "is " + std::to_string(head) + ", and axes_dims_rope add up to " +
                                                    std::to_string(options.head_width()));
    }
    config.finish();
    return options;
}

}  // namespace detail

STRATA_INLINE FluxOptions read_flux_config(const std::filesystem::path& file) {
    return detail::flux_options_of(ModelConfig{file, "FluxTransformer"});
}

STRATA_INLINE FluxOptions parse_flux_config(std::string_view json, std::string source) {
    return detail::flux_options_of(ModelConfig{json, std::move(source), "FluxTransformer"});
}

}  // namespace strata::models
