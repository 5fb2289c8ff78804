#pragma once
// strata/models/impl/autoencoder_kl.ipp - bodies of AutoencoderKl.

#include <array>
#include <string>
#include <utility>

#include <strata/models/autoencoder_kl.hpp>
#include <strata/models/detail/picture_size.hpp>
#include <strata/models/impl/autoencoder_kl_options.ipp>
#include <strata/models/impl/kl_blocks.ipp>
#include <strata/models/impl/tiled_decode.ipp>

namespace strata::models {

STRATA_INLINE AutoencoderKl::AutoencoderKl(const AutoencoderKlOptions& options) : options_{options} {
    options_.check();
    pixels_per_latent_ = std::int64_t{1} << (options_.widths.size() - 1);
    encoder_ = register_module("encoder", std::make_shared<KlEncoder>(options_));
    decoder_ = register_module("decoder", std::make_shared<KlDecoder>(options_));
    const std::int64_t C = options_.latent_channels;
    if (options_.quant_conv) quant_conv_ = register_module("quant_conv", detail::convolution(2 * C, 2 * C, 1, 1, 0));
    if (options_.post_quant_conv)
        post_quant_conv_ = register_module("post_quant_conv", detail::convolution(C, C, 1, 1, 0));
}

STRATA_INLINE LatentDistribution AutoencoderKl::encode(const at::Tensor& images_B3HW) {
    detail::check_picture_size("AutoencoderKl", images_B3HW, pixels_per_latent_);
    at::Tensor moments = encoder_->forward(images_B3HW.to(tensor_options()));
    if (quant_conv_) moments = quant_conv_->forward(moments);
    const std::vector<at::Tensor> halves = moments.chunk(2, 1);
    return {halves[0], halves[1].clamp(-30.0, 20.0)};
}

STRATA_INLINE at::Tensor AutoencoderKl::decode(const at::Tensor& latents_BChw) {
    const at::Tensor latents = latents_BChw.to(tensor_options());
    return decoder_->forward(post_quant_conv_ ? post_quant_conv_->forward(latents) : latents);
}

STRATA_INLINE at::Tensor AutoencoderKl::decode(const at::Tensor& latents_BChw, const TileOptions& tiles) {
    const auto decode_tile = [this](const at::Tensor& tile) { return decode(tile); };
    return tiled_decode(latents_BChw.to(tensor_options()), pixels_per_latent_, tiles, decode_tile);
}

STRATA_INLINE std::string AutoencoderKl::current_name(std::string_view name) {
    constexpr std::string_view attention = ".mid_block.attentions.0.";
    constexpr std::array<std::array<std::string_view, 2>, 4> renamed{
        {{"query.", "to_q."}, {"key.", "to_k."}, {"value.", "to_v."}, {"proj_attn.", "to_out.0."}}};
    const std::size_t begin = name.find(attention);
    if (begin == std::string_view::npos) return std::string{name};
    const std::string_view stem = name.substr(0, begin + attention.size()), rest = name.substr(stem.size());
    for (const auto& [old, current] : renamed)
        if (rest.starts_with(old))
            return std::string{stem} + std::string{current} + std::string{rest.substr(old.size())};
    return std::string{name};
}

}  // namespace strata::models
