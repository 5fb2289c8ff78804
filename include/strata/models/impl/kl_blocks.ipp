#pragma once
// strata/models/impl/kl_blocks.ipp - bodies of the blocks of AutoencoderKl.

#include <string>
#include <utility>

#include <strata/models/attention.hpp>
#include <strata/models/impl/attention.ipp>
#include <strata/models/impl/flux_blocks.ipp>
#include <strata/models/impl/resnet_block.ipp>
#include <strata/models/kl_blocks.hpp>

namespace strata::models {

namespace detail {

inline constexpr double kl_eps = 1e-6;

/// Residual blocks "resnets.0", "resnets.1", ... of `owner`, of which the first goes from C_in to C_out channels.
inline std::vector<std::shared_ptr<ResnetBlock>> resnets(Folder& folder, std::int64_t C_in, std::int64_t C_out,
                                                         std::int64_t layers, std::int64_t groups) {
    std::vector<std::shared_ptr<ResnetBlock>> blocks;
    for (std::int64_t i = 0; i < layers; ++i)
        blocks.push_back(folder.add(std::to_string(i).c_str(),
                                    std::make_shared<ResnetBlock>(i == 0 ? C_in : C_out, C_out, 0, groups, kl_eps)));
    return blocks;
}

}  // namespace detail

STRATA_INLINE PixelAttention::PixelAttention(std::int64_t C, std::int64_t groups)
    : group_norm_(register_module("group_norm", std::make_shared<GroupNorm>(groups, C, detail::kl_eps))),
      to_q_(register_module("to_q", std::make_shared<Linear>(C, C))),
      to_k_(register_module("to_k", std::make_shared<Linear>(C, C))),
      to_v_(register_module("to_v", std::make_shared<Linear>(C, C))),
      to_out_(register_module("to_out", std::make_shared<detail::Folder>())->add("0", std::make_shared<Linear>(C, C))) {
}

STRATA_INLINE at::Tensor PixelAttention::forward(const at::Tensor& x_BChw) {
    const std::int64_t C = x_BChw.size(1);
    const at::Tensor pixels_BLC = group_norm_->forward(x_BChw).flatten(2).transpose(1, 2).contiguous();
    const auto heads = [&](const std::shared_ptr<Linear>& layer) { return split_heads(layer->forward(pixels_BLC), C); };
    const at::Tensor attended_BLC = attention(heads(to_q_), heads(to_k_), heads(to_v_));
    return x_BChw + to_out_->forward(attended_BLC).transpose(1, 2).reshape(x_BChw.sizes());
}

STRATA_INLINE KlDownBlock::KlDownBlock(std::int64_t C_in, std::int64_t C_out, std::int64_t layers, std::int64_t groups,
                                       bool halves)
    : resnets_(detail::resnets(*register_module("resnets", std::make_shared<detail::Folder>()), C_in, C_out, layers,
                               groups)) {
    if (halves)
        downsample_ = register_module("downsamplers", std::make_shared<detail::Folder>())
                          ->add("0", std::make_shared<Downsample>(C_out, Downsample::Border::right_and_bottom));
}

STRATA_INLINE at::Tensor KlDownBlock::forward(const at::Tensor& x_BChw) {
    at::Tensor h = x_BChw;
    for (const auto& resnet : resnets_) h = resnet->forward(h);
    return downsample_ ? downsample_->forward(h) : h;
}

STRATA_INLINE KlMidBlock::KlMidBlock(std::int64_t C, std::int64_t groups, bool has_attention)
    : resnets_(detail::resnets(*register_module("resnets", std::make_shared<detail::Folder>()), C, C, 2, groups)) {
    if (has_attention)
        attention_ = register_module("attentions", std::make_shared<detail::Folder>())
                         ->add("0", std::make_shared<PixelAttention>(C, groups));
}

STRATA_INLINE at::Tensor KlMidBlock::forward(const at::Tensor& x_BChw) {
    const at::Tensor h = resnets_[0]->forward(x_BChw);
    return resnets_[1]->forward(attention_ ? attention_->forward(h) : h);
}

STRATA_INLINE KlUpBlock::KlUpBlock(std::int64_t C_in, std::int64_t C_out, std::int64_t layers, std::int64_t groups,
                                   bool doubles)
    : resnets_(detail::resnets(*register_module("resnets", std::make_shared<detail::Folder>()), C_in, C_out, layers,
                               groups)) {
    if (doubles)
        upsample_ = register_module("upsamplers", std::make_shared<detail::Folder>())
                        ->add("0", std::make_shared<Upsample>(C_out));
}

STRATA_INLINE at::Tensor KlUpBlock::forward(const at::Tensor& x_BChw) {
    at::Tensor h = x_BChw;
    for (const auto& resnet : resnets_) h = resnet->forward(h);
    return upsample_ ? upsample_->forward(h) : h;
}

STRATA_INLINE KlEncoder::KlEncoder(const AutoencoderKlOptions& options)
    : conv_in(register_module("conv_in", detail::convolution(3, options.widths.front(), 3, 1, 1))), conv_out(nullptr) {
    auto blocks = register_module("down_blocks", std::make_shared<detail::Folder>());
    std::int64_t C = options.widths.front();
    for (std::size_t i = 0; i < options.widths.size(); ++i) {
        down_blocks.push_back(
            blocks->add(std::to_string(i).c_str(),
                        std::make_shared<Unit<KlDownBlock>>(C, options.widths[i], options.layers_per_block,
                                                            options.norm_groups, i + 1 < options.widths.size())));
        C = options.widths[i];
    }
    mid_block =
        register_module("mid_block", std::make_shared<Unit<KlMidBlock>>(C, options.norm_groups, options.mid_attention));
    conv_norm_out =
        register_module("conv_norm_out", std::make_shared<GroupNorm>(options.norm_groups, C, detail::kl_eps));
    conv_out = register_module("conv_out", detail::convolution(C, 2 * options.latent_channels, 3, 1, 1));
}

STRATA_INLINE at::Tensor KlEncoder::forward(const at::Tensor& images_B3HW) {
    at::Tensor h = conv_in->forward(images_B3HW);
    for (const auto& block : down_blocks) h = block->forward(h);
    h = mid_block->forward(h);
    return conv_out->forward(at::silu(conv_norm_out->forward(h)));
}

STRATA_INLINE KlDecoder::KlDecoder(const AutoencoderKlOptions& options)
    : conv_in(register_module("conv_in", detail::convolution(options.latent_channels, options.widths.back(), 3, 1, 1))),
      conv_out(nullptr) {
    std::int64_t C = options.widths.back();
    auto blocks = register_module("up_blocks", std::make_shared<detail::Folder>());
    for (std::size_t i = 0; i < options.widths.size(); ++i) {
        const std::int64_t C_out = options.widths[options.widths.size() - 1 - i];
        up_blocks.push_back(
            blocks->add(std::to_string(i).c_str(),
                        std::make_shared<Unit<KlUpBlock>>(C, C_out, options.layers_per_block + 1, options.norm_groups,
                                                          i + 1 < options.widths.size())));
        C = C_out;
    }
    mid_block = register_module("mid_block", std::make_shared<Unit<KlMidBlock>>(
                                                 options.widths.back(), options.norm_groups, options.mid_attention));
    conv_norm_out =
        register_module("conv_norm_out", std::make_shared<GroupNorm>(options.norm_groups, C, detail::kl_eps));
    conv_out = register_module("conv_out", detail::convolution(C, 3, 3, 1, 1));
}

STRATA_INLINE at::Tensor KlDecoder::forward(const at::Tensor& latents_BChw) {
    at::Tensor h = mid_block->forward(conv_in->forward(latents_BChw));
    for (const auto& block : up_blocks) h = block->forward(h);
    return conv_out->forward(at::silu(conv_norm_out->forward(h)));
}

}  // namespace strata::models
