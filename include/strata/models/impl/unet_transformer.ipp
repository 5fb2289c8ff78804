#pragma once
// strata/models/impl/unet_transformer.ipp - bodies of the transformers inside of a U-Net.

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <strata/models/impl/attention.ipp>
#include <strata/models/impl/fused_ops.ipp>
#include <strata/models/impl/norms.ipp>
#include <strata/models/impl/unet_ops.ipp>
#include <strata/models/unet_ops.hpp>
#include <strata/models/unet_transformer.hpp>

namespace strata::models {

namespace detail {

/// A module that is a step in others' names and nothing else.
struct NameStep final : torch::nn::Module {
    template <class Child>
    Child add(const std::string& name, Child child) {
        return register_module(name, std::move(child));
    }
};

inline std::shared_ptr<Linear> linear_layer(std::int64_t in, std::int64_t out, bool has_bias) {
    return std::make_shared<Linear>(in, out, has_bias);
}

}  // namespace detail

STRATA_INLINE CrossAttention::CrossAttention(std::int64_t C, std::int64_t E, std::int64_t heads)
    : head_width_(C / heads),
      to_q_(register_module("to_q", detail::linear_layer(C, C, false))),
      to_k_(register_module("to_k", detail::linear_layer(E, C, false))),
      to_v_(register_module("to_v", detail::linear_layer(E, C, false))) {
    to_out_ = register_module("to_out", std::make_shared<detail::NameStep>())->add("0", std::make_shared<Linear>(C, C));
}

STRATA_INLINE at::Tensor CrossAttention::forward(const at::Tensor& x_BLC, const at::Tensor& context_BSE) {
    const auto heads = [&](const std::shared_ptr<Linear>& layer, const at::Tensor& tokens) {
        return split_heads(layer->forward(tokens), head_width_);
    };
    return to_out_->forward(attention(heads(to_q_, x_BLC), heads(to_k_, context_BSE), heads(to_v_, context_BSE)));
}

STRATA_INLINE GatedFeedForward::GatedFeedForward(std::int64_t C) {
    const auto net = register_module("net", std::make_shared<detail::NameStep>());
    in_ = net->add("0", std::make_shared<detail::NameStep>())->add("proj", std::make_shared<Linear>(C, 8 * C));
    out_ = net->add("2", std::make_shared<Linear>(4 * C, C));
}

STRATA_INLINE at::Tensor GatedFeedForward::forward(const at::Tensor& x_BLC) {
    return out_->forward(geglu(in_->forward(x_BLC)));
}

STRATA_INLINE TransformerBlock::TransformerBlock(std::int64_t C, std::int64_t E, std::int64_t heads)
    : norm1_(register_module("norm1", std::make_shared<LayerNorm>(C))),
      norm2_(register_module("norm2", std::make_shared<LayerNorm>(C))),
      norm3_(register_module("norm3", std::make_shared<LayerNorm>(C))),
      attn1_(register_module("attn1", std::make_shared<CrossAttention>(C, C, heads))),
      attn2_(register_module("attn2", std::make_shared<CrossAttention>(C, E, heads))),
      ff_(register_module("ff", std::make_shared<GatedFeedForward>(C))) {}

STRATA_INLINE at::Tensor TransformerBlock::forward(const at::Tensor& x_BLC, const at::Tensor& context_BSE) {
    const at::Tensor normed = norm1_->forward(x_BLC);
    at::Tensor x = x_BLC + attn1_->forward(normed, normed);
    x = x + attn2_->forward(norm2_->forward(x), context_BSE);
    return x + ff_->forward(norm3_->forward(x));
}

STRATA_INLINE TokenProjection::TokenProjection(std::int64_t C, bool as_convolution) {
    torch::nn::Linear start{C, C};  // begins as any linear layer does
    const at::Tensor weight = start->weight.detach();
    weight_ = register_parameter("weight", (as_convolution ? weight.view({C, C, 1, 1}) : weight).clone());
    bias_ = register_parameter("bias", start->bias.detach().clone());
}

STRATA_INLINE at::Tensor TokenProjection::forward(const at::Tensor& x_BLC) {
    return adapter_acts() ? adapted(x_BLC) : sum(x_BLC, weight_, bias_);
}

STRATA_INLINE LayerShape TokenProjection::shape() const { return {.in = weight_.size(1), .out = weight_.size(0)}; }

STRATA_INLINE at::Tensor TokenProjection::sum(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) const {
    return linear(x, w.flatten(1), b);
}

STRATA_INLINE SpatialTransformer::SpatialTransformer(const Options& options)
    : norm_(register_module("norm", std::make_shared<GroupNorm>(options.norm_groups, options.C, 1e-6))),
      proj_in_(register_module("proj_in", std::make_shared<TokenProjection>(options.C, !options.linear_projection))) {
    torch::nn::ModuleList list;
    for (std::int64_t i = 0; i < options.depth; ++i) {
        blocks_.push_back(std::make_shared<Unit<TransformerBlock>>(options.C, options.E, options.heads));
        list->push_back(blocks_.back());
    }
    register_module("transformer_blocks", list);
    proj_out_ = register_module("proj_out", std::make_shared<TokenProjection>(options.C, !options.linear_projection));
}

STRATA_INLINE at::Tensor SpatialTransformer::forward(const at::Tensor& x_BChw, const at::Tensor& context_BSE) {
    at::Tensor tokens = proj_in_->forward(norm_->forward(x_BChw).flatten(2).transpose(1, 2));
    for (const auto& block : blocks_) tokens = block->forward(tokens, context_BSE);
    return x_BChw + proj_out_->forward(tokens).transpose(1, 2).reshape(x_BChw.sizes());
}

}  // namespace strata::models
