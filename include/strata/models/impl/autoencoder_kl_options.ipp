#pragma once
// strata/models/impl/autoencoder_kl_options.ipp - what fits together, and what a config.json may say.

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/models/autoencoder_kl_options.hpp>
#include <strata/models/impl/model_config.ipp>
#include <strata/models/model_config.hpp>

namespace strata::models {

STRATA_INLINE void AutoencoderKlOptions::check() const {
    const auto refuse = [](const std::string& what, std::string_view fix) {
        throw Error{Errc::bad_model_options, "AutoencoderKlOptions: " + what, fix};
    };
    if (widths.empty()) refuse("no widths", "give the channels of each block, as {128, 256, 512, 512}");
    if (latent_channels < 1 || layers_per_block < 1 || norm_groups < 1)
        refuse("latent_channels, layers_per_block and norm_groups are " + std::to_string(latent_channels) + ", " +
                   std::to_string(layers_per_block) + " and " + std::to_string(norm_groups),
               "give numbers of at least 1");
    for (const std::int64_t width : widths)
        if (width < 1 || width % norm_groups != 0)
            refuse("a width of " + std::to_string(width) + " in " + std::to_string(norm_groups) + " groups of a norm",
                   "give widths that are multiples of norm_groups");
    if (scaling_factor == 0.0 || !std::isfinite(scaling_factor) || !std::isfinite(shift_factor))
        refuse("scaling_factor is 0, or it or shift_factor not finite", "give the numbers of the weights' config.json");
}

namespace detail {

inline AutoencoderKlOptions autoencoder_kl_options(ModelConfig config) {
    config.is_class("AutoencoderKL");
    config.only("in_channels", "3");
    config.only("out_channels", "3");
    config.only("act_fn", "silu");
    config.pass_over({"sample_size", "force_upcast"});
    config.never_null(
        {"act_fn", "norm_num_groups", "mid_block_add_attention", "use_quant_conv", "use_post_quant_conv"});
    AutoencoderKlOptions options;
    options.latent_channels = config.whole("latent_channels", 1, 4);
    options.widths = config.wholes("block_out_channels", 1, std::vector<std::int64_t>{64});
    options.layers_per_block = config.whole("layers_per_block", 1, 1);
    options.norm_groups = config.whole("norm_num_groups", 1, 32);
    options.mid_attention = config.flag("mid_block_add_attention", true);
    options.quant_conv = config.flag("use_quant_conv", true);
    options.post_quant_conv = config.flag("use_post_quant_conv", true);
    options.scaling_factor = config.number("scaling_factor", 0.18215);
    options.shift_factor = config.number("shift_factor", 0.0);
    const auto blocks_are = [&](std::string_view key, std::string_view kind) {
        const std::vector<std::string> blocks = config.texts(key, std::vector<std::string>{std::string{kind}});
        for (const std::string& block : blocks)
            if (block != kind)
                config.refuse(key, "has '" + block + "', and only " + std::string{kind} + " is implemented");
        if (!blocks.empty() && !options.widths.empty() && blocks.size() != options.widths.size())
            config.refuse(key, "has " + std::to_string(blocks.size()) + " blocks, and 'block_out_channels' " +
                                   std::to_string(options.widths.size()));
    };
    blocks_are("down_block_types", "DownEncoderBlock2D");
    blocks_are("up_block_types", "UpDecoderBlock2D");
    for (const std::int64_t width : options.widths)
        if (width % options.norm_groups != 0)
            config.refuse("block_out_channels", "has " + std::to_string(width) +
                                                    ", no multiple of 'norm_num_groups', " +
                                                    std::to_string(options.norm_groups));
    if (options.scaling_factor == 0.0) config.refuse("scaling_factor", "is 0");
    config.finish();
    return options;
}

}  // namespace detail

STRATA_INLINE AutoencoderKlOptions read_autoencoder_kl(const std::filesystem::path& config_json) {
    return detail::autoencoder_kl_options(ModelConfig{config_json, "AutoencoderKl"});
}

STRATA_INLINE AutoencoderKlOptions parse_autoencoder_kl(std::string_view json, std::string source) {
    return detail::autoencoder_kl_options(ModelConfig{json, std::move(source), "AutoencoderKl"});
}

}  // namespace strata::models
