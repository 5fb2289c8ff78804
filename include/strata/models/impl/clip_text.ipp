#pragma once
// strata/models/impl/clip_text.ipp - bodies of ClipText.

#include <limits>
#include <string>

#include <strata/core/error.hpp>
#include <strata/models/clip_text.hpp>
#include <strata/models/impl/attention.ipp>
#include <strata/models/impl/flux_blocks.ipp>
#include <strata/models/impl/norms.ipp>
#include <strata/models/impl/projection.ipp>

namespace strata::models {

STRATA_INLINE ClipBlock::ClipBlock(const ClipTextOptions& options, const at::TensorOptions& of)
    : head_width_(options.width / options.heads), activation_(options.activation) {
    const std::int64_t D = options.width, F = options.feed_forward_width;
    auto attention = register_module("self_attn", std::make_shared<detail::Folder>());
    k_proj_ = attention->add("k_proj", std::make_shared<Projection>(D, D, true, of));
    v_proj_ = attention->add("v_proj", std::make_shared<Projection>(D, D, true, of));
    q_proj_ = attention->add("q_proj", std::make_shared<Projection>(D, D, true, of));
    out_proj_ = attention->add("out_proj", std::make_shared<Projection>(D, D, true, of));
    layer_norm1_ = register_module("layer_norm1", std::make_shared<LayerNorm>(D, options.epsilon));
    auto mlp = register_module("mlp", std::make_shared<detail::Folder>());
    fc1_ = mlp->add("fc1", std::make_shared<Projection>(D, F, true, of));
    fc2_ = mlp->add("fc2", std::make_shared<Projection>(F, D, true, of));
    layer_norm2_ = register_module("layer_norm2", std::make_shared<LayerNorm>(D, options.epsilon));
    to(of.device(), c10::typeMetaToScalarType(of.dtype()));
}

STRATA_INLINE at::Tensor ClipBlock::forward(const at::Tensor& x_BLD, const at::Tensor& bias_B1LL) {
    const at::Tensor n = layer_norm1_->forward(x_BLD);
    const auto heads = [&](const std::shared_ptr<Projection>& of) { return split_heads(of->forward(n), head_width_); };
    AttentionOptions options;
    options.bias_BHLS = bias_B1LL;
    const at::Tensor x = x_BLD + out_proj_->forward(attention(heads(q_proj_), heads(k_proj_), heads(v_proj_), options));
    const at::Tensor hidden = fc1_->forward(layer_norm2_->forward(x));
    return x +
           fc2_->forward(activation_ == ClipActivation::gelu ? at::gelu(hidden) : hidden * at::sigmoid(hidden * 1.702));
}

STRATA_INLINE ClipText::ClipText(const ClipTextOptions& options, const at::TensorOptions& of) : options_(options) {
    std::string wrong;
    const auto at_least = [&](const char* name, std::int64_t value, std::int64_t least) {
        if (value < least)
            wrong +=
                std::string{wrong.empty() ? "" : ", "} + "ClipTextOptions::" + name + " is " + std::to_string(value);
    };
    at_least("vocabulary", options.vocabulary, 1);
    at_least("width", options.width, 1);
    at_least("feed_forward_width", options.feed_forward_width, 1);
    at_least("blocks", options.blocks, 2);
    at_least("heads", options.heads, 1);
    at_least("longest", options.longest, 1);
    at_least("projection_width", options.projection_width, 1);
    if (options.heads >= 1 && options.width % options.heads != 0)
        wrong += std::string{wrong.empty() ? "" : ", "} + "ClipTextOptions::width is " + std::to_string(options.width) +
                 " and heads is " + std::to_string(options.heads);
    if (!wrong.empty())
        throw Error{Errc::bad_model_options, wrong,
                    "give sizes above 0, two blocks or more, and a width that is a multiple of heads"};

    auto text_model = register_module("text_model", std::make_shared<detail::Folder>());
    auto embeddings = text_model->add("embeddings", std::make_shared<detail::Folder>());
    const auto table = [&](const char* name, std::int64_t rows) {
        return embeddings->add(name, std::make_shared<detail::Folder>())
            ->register_parameter("weight", at::zeros({rows, options.width}, of));
    };
    token_embedding_ = table("token_embedding", options.vocabulary);
    position_embedding_ = table("position_embedding", options.longest);
    auto layers = text_model->add("encoder", std::make_shared<detail::Folder>())
                      ->add("layers", std::make_shared<detail::Folder>());
    for (std::int64_t i = 0; i < options.blocks; ++i)
        blocks_.push_back(layers->add(std::to_string(i).c_str(), std::make_shared<Unit<ClipBlock>>(options, of)));
    final_layer_norm_ =
        text_model->add("final_layer_norm", std::make_shared<LayerNorm>(options.width, options.epsilon));
    final_layer_norm_->to(of.device(), c10::typeMetaToScalarType(of.dtype()));
    if (options.has_projection)
        text_projection_ = register_module(
            "text_projection", std::make_shared<Projection>(options.width, options.projection_width, false, of));
}

/// (B): where the text's token stands.
STRATA_INLINE at::Tensor ClipText::places_of_texts(const at::Tensor& ids_BL) const {
    constexpr std::int64_t means_largest = 2;
    const at::Tensor is_it = options_.eos == means_largest ? ids_BL == ids_BL.amax(1, true) : ids_BL == options_.eos;
    const std::int64_t L = ids_BL.size(1);
    const at::Tensor first = at::arange(L, ids_BL.options()).masked_fill(~is_it, L).amin(1);
    return first.masked_fill(first == L, 0);
}

STRATA_INLINE ClipTextOutput ClipText::forward(const at::Tensor& ids_BL, const at::Tensor& mask_BL) {
    if (ids_BL.dim() != 2 || ids_BL.size(1) < 1 || ids_BL.size(1) > options_.longest ||
        (mask_BL.defined() && mask_BL.sizes() != ids_BL.sizes()))
        throw Error{Errc::bad_value,
                    "ClipText got ids or a mask of another shape than (texts, 1 to " +
                        std::to_string(options_.longest) + " tokens) both",
                    "give ids (B, L) as a tokenizer of that length makes them, and a mask of the same shape or none"};
    const std::int64_t L = ids_BL.size(1);
    at::Tensor x = at::embedding(token_embedding_, ids_BL) + position_embedding_.narrow(0, 0, L);

    // A lowest number and not -inf: a row in which nothing may be seen stays finite.
    const at::ScalarType wide = detail::wide(x);
    const double never = wide == at::kDouble ? std::numeric_limits<double>::lowest()
                                             : static_cast<double>(std::numeric_limits<float>::lowest());
    at::Tensor unseen = at::ones({L, L}, x.options().dtype(at::kBool)).triu(1).view({1, 1, L, L});
    if (mask_BL.defined()) unseen = unseen.logical_or((mask_BL == 0).view({ids_BL.size(0), 1, 1, L}));
    const at::Tensor bias = at::zeros(unseen.sizes(), x.options().dtype(wide)).masked_fill(unseen, never);

    ClipTextOutput out;
    out.hidden_states.push_back(x);
    for (const auto& block : blocks_) out.hidden_states.push_back(x = block->forward(x, bias));
    out.last_hidden_state = final_layer_norm_->forward(x);
    const at::Tensor rows = at::arange(ids_BL.size(0), ids_BL.options());
    out.pooled = out.last_hidden_state.index({rows, places_of_texts(ids_BL)});
    if (text_projection_) out.text_embeds = text_projection_->forward(out.pooled);
    return out;
}

}  // namespace strata::models
