#pragma once
// strata/models/impl/autoencoder_tiny.ipp - bodies of AutoencoderTiny, its config.json, and upstream's names.

#include <charconv>
#include <cmath>
#include <string>

#include <strata/core/error.hpp>
#include <strata/models/autoencoder_tiny.hpp>
#include <strata/models/detail/picture_size.hpp>
#include <strata/models/impl/flux_blocks.ipp>
#include <strata/models/impl/model_config.ipp>
#include <strata/models/impl/resnet_block.ipp>
#include <strata/models/impl/tiled_decode.ipp>
#include <strata/models/model_config.hpp>

namespace strata::models {

namespace detail {

/// 3x3, or 1x1, without a bias.
inline std::shared_ptr<Conv2d> bare_convolution(std::int64_t C_in, std::int64_t C_out, std::int64_t edge,
                                                std::int64_t stride) {
    return std::make_shared<Conv2d>(C_in, C_out, edge, stride, edge / 2, false);
}

inline constexpr std::int64_t pool_groups = 4;

}  // namespace detail

STRATA_INLINE void AutoencoderTinyOptions::check() const {
    const auto refuse = [](const std::string& what, std::string_view fix) {
        throw Error{Errc::bad_model_options, "AutoencoderTinyOptions: " + what, fix};
    };
    if (latent_channels < 1 || width < 1)
        refuse("latent_channels and width are " + std::to_string(latent_channels) + " and " + std::to_string(width),
               "give numbers of at least 1");
    if (encoder_blocks.empty() || encoder_blocks.size() != decoder_blocks.size())
        refuse(std::to_string(encoder_blocks.size()) + " resolutions in encoder_blocks and " +
                   std::to_string(decoder_blocks.size()) + " in decoder_blocks",
               "give the same number of both, at least one");
    if (coarse_pools && 4 * width % detail::pool_groups != 0)
        refuse("pools of " + std::to_string(4 * width) + " channels", "give a width of at least 1");
    if (scaling_factor == 0.0 || latent_magnitude <= 0.0 || !std::isfinite(scaling_factor + shift_factor))
        refuse("scaling_factor or latent_magnitude is 0, or a number is not finite",
               "give the numbers of the weights' config.json");
}

namespace detail {

inline AutoencoderTinyOptions autoencoder_tiny_options(ModelConfig config) {
    config.is_class("AutoencoderTiny");
    config.only("in_channels", "3");
    config.only("out_channels", "3");
    config.only("act_fn", "relu");
    config.only("upsample_fn", "nearest");
    config.only("upsampling_scaling_factor", "2");
    config.pass_over({"force_upcast", "block_out_channels"});
    AutoencoderTinyOptions options;
    options.latent_channels = config.whole("latent_channels", 1, 4);
    options.encoder_blocks = config.wholes("num_encoder_blocks", 0, options.encoder_blocks);
    options.decoder_blocks = config.wholes("num_decoder_blocks", 0, options.decoder_blocks);
    options.scaling_factor = config.number("scaling_factor", 1.0);
    options.shift_factor = config.number("shift_factor", 0.0);
    options.latent_magnitude = config.number("latent_magnitude", 3.0);
    options.latent_shift = config.number("latent_shift", 0.5);
    const auto widths_are = [&](std::string_view key, std::string_view blocks_key, std::size_t blocks) {
        const std::vector<std::int64_t> widths =
            config.wholes(key, 1, std::vector<std::int64_t>(blocks, options.width));
        if (config.has(key) && !widths.empty()) options.width = widths.front();
        if (widths.size() != blocks)
            config.refuse(key, "has " + std::to_string(widths.size()) + " entries, and '" + std::string{blocks_key} +
                                   "' " + std::to_string(blocks));
        for (const std::int64_t width : widths)
            if (width != options.width) {
                config.refuse(key, "has different widths, and only one for all blocks is implemented");
                break;
            }
        return widths.empty() ? options.width : widths.front();
    };
    const std::int64_t in_encoder =
        widths_are("encoder_block_out_channels", "num_encoder_blocks", options.encoder_blocks.size());
    const std::int64_t in_decoder =
        widths_are("decoder_block_out_channels", "num_decoder_blocks", options.decoder_blocks.size());
    if (in_encoder != in_decoder)
        config.refuse("decoder_block_out_channels", "has another width than 'encoder_block_out_channels'");
    if (options.encoder_blocks.size() != options.decoder_blocks.size())
        config.refuse("num_decoder_blocks", "has " + std::to_string(options.decoder_blocks.size()) +
                                                " entries, and 'num_encoder_blocks' " +
                                                std::to_string(options.encoder_blocks.size()));
    if (options.scaling_factor == 0.0) config.refuse("scaling_factor", "is 0");
    if (options.latent_magnitude <= 0.0) config.refuse("latent_magnitude", "is not above 0");
    config.finish();
    return options;
}

}  // namespace detail

STRATA_INLINE AutoencoderTinyOptions read_autoencoder_tiny(const std::filesystem::path& config_json) {
    return detail::autoencoder_tiny_options(ModelConfig{config_json, "AutoencoderTiny"});
}

STRATA_INLINE AutoencoderTinyOptions parse_autoencoder_tiny(std::string_view json, std::string source) {
    return detail::autoencoder_tiny_options(ModelConfig{json, std::move(source), "AutoencoderTiny"});
}

STRATA_INLINE AutoencoderTinyOptions autoencoder_tiny_named(std::string_view name) {
    AutoencoderTinyOptions options;
    if (name == "taesd" || name == "taesdxl") return options;
    if (name == "taesd3" || name == "taef1") {
        options.latent_channels = 16;
    } else if (name == "taef2") {
        options.latent_channels = 32;
        options.coarse_pools = true;
    } else {
        throw Error{Errc::bad_value, "no small autoencoder is called '" + std::string{name} + "'",
                    "give taesd, taesdxl, taesd3, taef1 or taef2"};
    }
    return options;
}

STRATA_INLINE TinyBlock::TinyBlock(std::int64_t C, bool has_pool) : conv0_(nullptr), conv2_(nullptr), conv4_(nullptr) {
    auto conv = register_module("conv", std::make_shared<detail::Folder>());
    conv0_ = conv->add("0", detail::convolution(C, C, 3, 1, 1));
    conv2_ = conv->add("2", detail::convolution(C, C, 3, 1, 1));
    conv4_ = conv->add("4", detail::convolution(C, C, 3, 1, 1));
    if (!has_pool) return;
    auto pool = register_module("pool", std::make_shared<detail::Folder>());
    pool0_ = pool->add("0", detail::bare_convolution(C, 4 * C, 1, 1));
    pool1_ = pool->add("1", std::make_shared<GroupNorm>(detail::pool_groups, 4 * C, 1e-5));
    pool3_ = pool->add("3", detail::bare_convolution(4 * C, C, 1, 1));
}

STRATA_INLINE at::Tensor TinyBlock::forward(const at::Tensor& x_BChw) {
    const at::Tensor x = pool0_ ? x_BChw + pool3_->forward(at::relu(pool1_->forward(pool0_->forward(x_BChw)))) : x_BChw;
    const at::Tensor h = conv2_->forward(at::relu(conv0_->forward(x)));
    return at::relu(conv4_->forward(at::relu(h)) + x);
}

STRATA_INLINE AutoencoderTiny::AutoencoderTiny(const AutoencoderTinyOptions& options) : options_{options} {
    options_.check();
    const std::int64_t C = options_.width;
    const std::size_t last = options_.encoder_blocks.size() - 1;
    const auto add_blocks = [&](torch::nn::Sequential& layers, std::int64_t count, bool is_coarsest) {
        for (std::int64_t i = 0; i < count; ++i)
            layers->push_back(std::make_shared<TinyBlock>(C, is_coarsest && options_.coarse_pools));
    };
    encoder_->push_back(detail::convolution(3, C, 3, 1, 1));
    for (std::size_t i = 0; i <= last; ++i) {
        if (i > 0) encoder_->push_back(detail::bare_convolution(C, C, 3, 2));
        add_blocks(encoder_, options_.encoder_blocks[i], i == last);
    }
    encoder_->push_back(detail::convolution(C, options_.latent_channels, 3, 1, 1));

    decoder_->push_back(detail::convolution(options_.latent_channels, C, 3, 1, 1));
    decoder_->push_back(torch::nn::ReLU());
    for (std::size_t i = 0; i <= last; ++i) {
        add_blocks(decoder_, options_.decoder_blocks[i], i == 0);
        if (i == last) break;
        decoder_->push_back(torch::nn::Upsample(
            torch::nn::UpsampleOptions().scale_factor(std::vector<double>{2.0, 2.0}).mode(torch::kNearest)));
        decoder_->push_back(detail::bare_convolution(C, C, 3, 1));
    }
    decoder_->push_back(detail::convolution(C, 3, 3, 1, 1));

    register_module("encoder", std::make_shared<detail::Folder>())->add("layers", encoder_);
    register_module("decoder", std::make_shared<detail::Folder>())->add("layers", decoder_);
}

STRATA_INLINE at::TensorOptions AutoencoderTiny::tensor_options() const { return parameters().front().options(); }

STRATA_INLINE at::Tensor AutoencoderTiny::encode(const at::Tensor& images_B3HW) {
    detail::check_picture_size("AutoencoderTiny", images_B3HW, pixels_per_latent());
    return encoder_->forward((images_B3HW.to(tensor_options()) + 1.0) * 0.5);
}

STRATA_INLINE at::Tensor AutoencoderTiny::decode(const at::Tensor& latents_BChw) {
    return decoder_->forward(at::tanh(latents_BChw.to(tensor_options()) / 3.0) * 3.0) * 2.0 - 1.0;
}

STRATA_INLINE at::Tensor AutoencoderTiny::decode(const at::Tensor& latents_BChw, const TileOptions& tiles) {
    const auto decode_tile = [this](const at::Tensor& tile) { return decode(tile); };
    return tiled_decode(latents_BChw.to(tensor_options()), pixels_per_latent(), tiles, decode_tile);
}

STRATA_INLINE std::string AutoencoderTiny::name_of_upstream(std::string_view half, std::string_view name) {
    std::int64_t layer = 0;
    const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), layer);
    if (fault != std::errc{} || end == name.data() + name.size() || *end != '.') return std::string{name};
    if (half == "decoder") --layer;
    const std::string_view rest{end, static_cast<std::size_t>(name.data() + name.size() - end)};
    return std::string{half} + ".layers." + std::to_string(layer) + std::string{rest};
}

}  // namespace strata::models
