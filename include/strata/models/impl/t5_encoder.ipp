#pragma once
// strata/models/impl/t5_encoder.ipp - bodies of T5Encoder.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <strata/core/error.hpp>
#include <strata/models/impl/attention.ipp>
#include <strata/models/impl/flux_blocks.ipp>
#include <strata/models/impl/fused_ops.ipp>
#include <strata/models/impl/norms.ipp>
#include <strata/models/impl/projection.ipp>
#include <strata/models/t5_encoder.hpp>

namespace strata::models {

STRATA_INLINE std::int64_t distance_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t longest) {
    const std::int64_t half = buckets / 2, single = half / 2;
    const std::int64_t behind = distance > 0 ? half : 0;
    const std::int64_t far = std::abs(distance);
    if (far < single) return behind + far;
    // In fp32, as the reference does: a range ends where its logarithm rounds.
    const float share = std::log(static_cast<float>(far) / static_cast<float>(single)) /
                        static_cast<float>(std::log(static_cast<double>(longest) / static_cast<double>(single)));
    const auto range = static_cast<std::int64_t>(share * static_cast<float>(half - single));
    return behind + std::min(single + range, half - 1);
}

namespace detail {

/// (L, L): the bucket of key j for query i.
inline at::Tensor bucket_table(std::int64_t L, std::int64_t buckets, std::int64_t longest) {
    std::vector<std::int64_t> of_distance(static_cast<std::size_t>(2 * L - 1));  // from 1 - L on
    for (std::int64_t d = 1 - L; d < L; ++d)
        of_distance[static_cast<std::size_t>(d + L - 1)] = distance_bucket(d, buckets, longest);
    const at::Tensor table = at::empty({L, L}, at::kLong);
    auto* const out = table.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < L; ++i) std::copy_n(of_distance.begin() + (L - 1 - i), L, out + i * L);
    return table;
}

}  // namespace detail

STRATA_INLINE T5Block::T5Block(const T5Options& options, const at::TensorOptions& of)
    : head_width_(options.head_width) {
    const std::int64_t D = options.width, inner = options.heads * options.head_width, F = options.feed_forward_width;
    auto layers = register_module("layer", std::make_shared<detail::Folder>());
    auto first = layers->add("0", std::make_shared<detail::Folder>());
    auto attention = first->add("SelfAttention", std::make_shared<detail::Folder>());
    q_ = attention->add("q", std::make_shared<Projection>(D, inner, false, of));
    k_ = attention->add("k", std::make_shared<Projection>(D, inner, false, of));
    v_ = attention->add("v", std::make_shared<Projection>(D, inner, false, of));
    o_ = attention->add("o", std::make_shared<Projection>(inner, D, false, of));
    attention_norm_ = first->add("layer_norm", std::make_shared<RmsNorm>(D, options.epsilon));
    auto second = layers->add("1", std::make_shared<detail::Folder>());
    auto feed_forward = second->add("DenseReluDense", std::make_shared<detail::Folder>());
    wi_0_ = feed_forward->add("wi_0", std::make_shared<Projection>(D, F, false, of));
    wi_1_ = feed_forward->add("wi_1", std::make_shared<Projection>(D, F, false, of));
    wo_ = feed_forward->add("wo", std::make_shared<Projection>(F, D, false, of));
    feed_forward_norm_ = second->add("layer_norm", std::make_shared<RmsNorm>(D, options.epsilon));
    attention_ = attention;
    to(of.device(), c10::typeMetaToScalarType(of.dtype()));
}

STRATA_INLINE at::Tensor T5Block::forward(const at::Tensor& x_BLD, const at::Tensor& bias_BHLL) {
    // Scores are not divided by sqrt(K), so they are large: bf16 would round them by whole units.
    const at::ScalarType type = x_BLD.scalar_type(), wide = detail::wide(x_BLD);
    const at::Tensor n = attention_norm_->forward(x_BLD);
    const auto heads = [&](const std::shared_ptr<Projection>& of) {
        return split_heads(of->forward(n), head_width_).to(wide);
    };
    AttentionOptions options;
    options.bias_BHLS = bias_BHLL;
    options.scale = 1.0;
    const at::Tensor attended = attention(heads(q_), heads(k_), heads(v_), options).to(type);
    const at::Tensor x = x_BLD + o_->forward(attended);
    const at::Tensor m = feed_forward_norm_->forward(x);
    return x + wo_->forward(gelu_tanh(wi_0_->forward(m)) * wi_1_->forward(m));
}

STRATA_INLINE T5FirstBlock::T5FirstBlock(const T5Options& options, const at::TensorOptions& of)
    : T5Block(options, of), distance_buckets_(options.distance_buckets), longest_distance_(options.longest_distance) {
    auto bias = std::make_shared<detail::Folder>();
    relative_bias_weight_ = bias->register_parameter("weight", at::zeros({distance_buckets_, options.heads}, of));
    attention_->register_module("relative_attention_bias", bias);
}

STRATA_INLINE std::pair<at::Tensor, at::Tensor> T5FirstBlock::forward(const at::Tensor& x_BLD,
                                                                      const at::Tensor& mask_B11L) {
    const at::Tensor table_LL =
        detail::bucket_table(x_BLD.size(1), distance_buckets_, longest_distance_).to(x_BLD.device());
    at::Tensor bias = at::embedding(relative_bias_weight_.to(detail::wide(x_BLD)), table_LL);  // (L, L, H)
    bias = bias.permute({2, 0, 1}).unsqueeze(0).contiguous();
    if (mask_B11L.defined()) bias = bias + mask_B11L;
    return {T5Block::forward(x_BLD, bias), bias};
}

STRATA_INLINE T5Encoder::T5Encoder(const T5Options& options, const at::TensorOptions& of) : options_(options) {
    std::string wrong;
    const auto at_least = [&](const char* name, std::int64_t value, std::int64_t least) {
        if (value < least)
            wrong += std::string{wrong.empty() ? "" : ", "} + "T5Options::" + name + " is " + std::to_string(value);
    };
    at_least("vocabulary", options.vocabulary, 1);
    at_least("width", options.width, 1);
    at_least("head_width", options.head_width, 1);
    at_least("feed_forward_width", options.feed_forward_width, 1);
    at_least("blocks", options.blocks, 1);
    at_least("heads", options.heads, 1);
    at_least("distance_buckets", options.distance_buckets, 4);
    at_least("longest_distance", options.longest_distance, options.distance_buckets / 4 + 1);
    if (!wrong.empty())
        throw Error{Errc::bad_model_options, wrong,
                    "give whole sizes: 4 buckets or more, and a longest distance above a quarter of their number"};
    shared_ = register_module("shared", std::make_shared<detail::Folder>())
                  ->register_parameter("weight", at::zeros({options.vocabulary, options.width}, of));
    auto encoder = register_module("encoder", std::make_shared<detail::Folder>());
    auto blocks = encoder->add("block", std::make_shared<detail::Folder>());
    first_ = blocks->add("0", std::make_shared<Unit<T5FirstBlock>>(options, of));
    for (std::int64_t i = 1; i < options.blocks; ++i)
        rest_.push_back(blocks->add(std::to_string(i).c_str(), std::make_shared<Unit<T5Block>>(options, of)));
    final_layer_norm_ = encoder->add("final_layer_norm", std::make_shared<RmsNorm>(options.width, options.epsilon));
    final_layer_norm_->to(of.device(), c10::typeMetaToScalarType(of.dtype()));
}

STRATA_INLINE at::Tensor T5Encoder::forward(const at::Tensor& ids_BL, const at::Tensor& mask_BL) {
    if (ids_BL.dim() != 2 || (mask_BL.defined() && mask_BL.sizes() != ids_BL.sizes()))
        throw Error{Errc::bad_value, "T5Encoder got ids or a mask of another shape than (texts, tokens) both",
                    "give ids (B, L), and a mask of the same shape or none"};
    at::Tensor x = at::embedding(shared_, ids_BL);
    const at::ScalarType wide = detail::wide(x);
    at::Tensor mask;
    if (mask_BL.defined()) {
        const double never = wide == at::kDouble ? std::numeric_limits<double>::lowest()
                                                 : static_cast<double>(std::numeric_limits<float>::lowest());
        mask = at::zeros(mask_BL.sizes(), x.options().dtype(wide)).masked_fill(mask_BL == 0, never);
        mask = mask.view({mask_BL.size(0), 1, 1, mask_BL.size(1)});
    }
    at::Tensor bias;
    std::tie(x, bias) = first_->forward(x, mask);
    for (const auto& block : rest_) x = block->forward(x, bias);
    return final_layer_norm_->forward(x);
}

}  // namespace strata::models
