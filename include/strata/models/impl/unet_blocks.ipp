#pragma once
// strata/models/impl/unet_blocks.ipp - bodies of a U-Net's blocks.

#include <cmath>
#include <utility>

#include <strata/models/impl/resnet_block.ipp>
#include <strata/models/impl/unet_transformer.ipp>
#include <strata/models/unet_blocks.hpp>

namespace strata::models {

namespace detail {

/// The one module of a list, as files have it: downsamplers.0.
template <class Block>
std::shared_ptr<Block> only_one(torch::nn::Module& parent, const char* name, std::shared_ptr<Block> block) {
    parent.register_module(name, torch::nn::ModuleList())->push_back(block);
    return block;
}

}  // namespace detail

STRATA_INLINE UnetBlock::UnetBlock(const UnetOptions& options, const UnetBlockShape& shape, std::size_t attentions) {
    torch::nn::ModuleList resnets, transformers;
    for (const auto& [in, out] : shape.resnets) {
        resnets_.push_back(
            std::make_shared<Unit<ResnetBlock>>(in, out, options.time_dim(), options.norm_groups, options.norm_eps));
        resnets->push_back(resnets_.back());
    }
    register_module("resnets", resnets);
    if (shape.depth == 0) return;
    for (std::size_t i = 0; i < attentions; ++i) {
        attentions_.push_back(std::make_shared<SpatialTransformer>(
            SpatialTransformer::Options{.C = shape.channels(),
                                        .E = options.cross_attention_dim,
                                        .heads = shape.heads,
                                        .depth = shape.depth,
                                        .norm_groups = options.norm_groups,
                                        .linear_projection = options.linear_projection}));
        transformers->push_back(attentions_.back());
    }
    register_module("attentions", transformers);
}

STRATA_INLINE at::Tensor UnetBlock::layer(std::size_t i, const at::Tensor& x_BChw, const at::Tensor& time_BT,
                                          const at::Tensor& context_BSE) {
    const at::Tensor x = resnets_[i]->forward(x_BChw, time_BT);
    return i < attentions_.size() ? attentions_[i]->forward(x, context_BSE) : x;
}

STRATA_INLINE UnetDownBlock::UnetDownBlock(const UnetOptions& options, const UnetBlockShape& shape)
    : UnetBlock(options, shape, shape.resnets.size()) {
    if (shape.resamples)
        downsample_ = detail::only_one(
            *this, "downsamplers", std::make_shared<Unit<Downsample>>(shape.channels(), Downsample::Border::all_sides));
}

STRATA_INLINE at::Tensor UnetDownBlock::forward(at::Tensor x_BChw, const at::Tensor& time_BT,
                                                const at::Tensor& context_BSE, std::vector<at::Tensor>& skips) {
    for (std::size_t i = 0; i < layers(); ++i) {
        x_BChw = layer(i, x_BChw, time_BT, context_BSE);
        skips.push_back(x_BChw);
    }
    if (downsample_) {
        x_BChw = downsample_->forward(x_BChw);
        skips.push_back(x_BChw);
    }
    return x_BChw;
}

STRATA_INLINE UnetMidBlock::UnetMidBlock(const UnetOptions& options, const UnetBlockShape& shape)
    : UnetBlock(options, shape, 1) {}

STRATA_INLINE at::Tensor UnetMidBlock::forward(const at::Tensor& x_BChw, const at::Tensor& time_BT,
                                               const at::Tensor& context_BSE) {
    return layer(1, layer(0, x_BChw, time_BT, context_BSE), time_BT, context_BSE);
}

STRATA_INLINE UnetUpBlock::UnetUpBlock(const UnetOptions& options, const UnetBlockShape& shape)
    : UnetBlock(options, shape, shape.resnets.size()) {
    if (shape.resamples)
        upsample_ = detail::only_one(*this, "upsamplers", std::make_shared<Unit<Upsample>>(shape.channels()));
}

STRATA_INLINE at::Tensor UnetUpBlock::forward(at::Tensor x_BChw, const at::Tensor& time_BT,
                                              const at::Tensor& context_BSE, std::vector<at::Tensor>& skips) {
    for (std::size_t i = 0; i < layers(); ++i) {
        const at::Tensor both = at::cat({x_BChw, skips.back()}, 1);
        skips.pop_back();
        x_BChw = layer(i, both, time_BT, context_BSE);
    }
    // An odd edge was rounded up on the way down: the way up has the edges of what it meets next.
    if (upsample_) x_BChw = upsample_->forward(x_BChw, skips.back().size(2), skips.back().size(3));
    return x_BChw;
}

STRATA_INLINE UnetEmbedding::UnetEmbedding(std::int64_t in, std::int64_t T)
    : linear_1_(register_module("linear_1", std::make_shared<Linear>(in, T))),
      linear_2_(register_module("linear_2", std::make_shared<Linear>(T, T))) {}

STRATA_INLINE at::Tensor UnetEmbedding::forward(const at::Tensor& x) {
    return linear_2_->forward(at::silu(linear_1_->forward(x)));
}

STRATA_INLINE at::Tensor unet_features(const at::Tensor& numbers_N, std::int64_t width) {
    const at::Tensor numbers = numbers_N.to(at::kFloat);
    const double half = static_cast<double>(width) / 2;
    const at::Tensor frequencies = (at::arange(width / 2, numbers.options()) * (-std::log(10000.0) / half)).exp();
    const at::Tensor angles = numbers.unsqueeze(1) * frequencies;
    return at::cat({angles.cos(), angles.sin()}, 1);
}

}  // namespace strata::models
