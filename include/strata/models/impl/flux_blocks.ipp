#pragma once
// strata/models/impl/flux_blocks.ipp - bodies of the blocks.

#include <strata/models/attention.hpp>
#include <strata/models/flux_blocks.hpp>
#include <strata/models/fused_ops.hpp>

namespace strata::models {

namespace detail {

/// A module that only lends its name to the ones below it, as "net" in "ff.net.0.proj.weight".
struct Folder final : torch::nn::Module {
    template <class Child>
    Child add(const char* name, Child child) {
        return register_module(name, std::move(child));
    }
};

inline AttentionOptions with_bias(const at::Tensor& bias_B11L) {
    AttentionOptions options;
    options.bias_BHLS = bias_B11L;
    return options;
}

}  // namespace detail

STRATA_INLINE HeadNorm::HeadNorm(std::int64_t K) : weight(register_parameter("weight", at::ones({K}))) {}

STRATA_INLINE Modulation::Modulation(std::int64_t D, std::int64_t chunks_, FluxStart start)
    : chunks(chunks_), linear(register_module("linear", std::make_shared<Linear>(D, D * chunks_))) {
    if (start != FluxStart::identity) return;
    torch::nn::init::zeros_(linear->weight);
    torch::nn::init::zeros_(linear->bias);
}

STRATA_INLINE std::vector<at::Tensor> Modulation::forward(const at::Tensor& conditioning_BD) {
    return linear->forward(conditioning_BD).chunk(chunks, 1);
}

STRATA_INLINE FeedForward::FeedForward(std::int64_t D) {
    auto net = register_module("net", std::make_shared<detail::Folder>());
    auto first = net->add("0", std::make_shared<detail::Folder>());
    in = first->add("proj", std::make_shared<Linear>(D, 4 * D));
    out = net->add("2", std::make_shared<Linear>(4 * D, D));
}

STRATA_INLINE at::Tensor FeedForward::forward(const at::Tensor& x) { return out->forward(gelu_tanh(in->forward(x))); }

STRATA_INLINE JointProjections::JointProjections(std::int64_t D, std::int64_t K)
    : norm_q(register_module("norm_q", std::make_shared<HeadNorm>(K))),
      norm_k(register_module("norm_k", std::make_shared<HeadNorm>(K))),
      norm_added_q(register_module("norm_added_q", std::make_shared<HeadNorm>(K))),
      norm_added_k(register_module("norm_added_k", std::make_shared<HeadNorm>(K))),
      to_q(register_module("to_q", std::make_shared<Linear>(D, D))),
      to_k(register_module("to_k", std::make_shared<Linear>(D, D))),
      to_v(register_module("to_v", std::make_shared<Linear>(D, D))),
      add_q_proj(register_module("add_q_proj", std::make_shared<Linear>(D, D))),
      add_k_proj(register_module("add_k_proj", std::make_shared<Linear>(D, D))),
      add_v_proj(register_module("add_v_proj", std::make_shared<Linear>(D, D))),
      to_out(register_module("to_out", std::make_shared<detail::Folder>())->add("0", std::make_shared<Linear>(D, D))),
      to_add_out(register_module("to_add_out", std::make_shared<Linear>(D, D))) {}

STRATA_INLINE JointBlock::JointBlock(std::int64_t heads, std::int64_t K, FluxStart start)
    : norm1_(register_module("norm1", std::make_shared<Modulation>(heads * K, 6, start))),
      norm1_context_(register_module("norm1_context", std::make_shared<Modulation>(heads * K, 6, start))),
      attn_(register_module("attn", std::make_shared<JointProjections>(heads * K, K))),
      ff_(register_module("ff", std::make_shared<FeedForward>(heads * K))),
      ff_context_(register_module("ff_context", std::make_shared<FeedForward>(heads * K))) {}

STRATA_INLINE std::pair<at::Tensor, at::Tensor> JointBlock::forward(const at::Tensor& image_BID,
                                                                    const at::Tensor& text_BTD,
                                                                    const at::Tensor& conditioning_BD,
                                                                    const RotaryTable& rotary,
                                                                    const at::Tensor& bias_B11L) {
    enum { shift, scale, gate, shift_mlp, scale_mlp, gate_mlp };
    const std::vector<at::Tensor> image_mod = norm1_->forward(conditioning_BD);
    const std::vector<at::Tensor> text_mod = norm1_context_->forward(conditioning_BD);
    const std::int64_t T = text_BTD.size(1);
    const std::int64_t I = image_BID.size(1);
    const std::int64_t K = attn_->norm_q->weight.size(0);

    const at::Tensor image = modulated_norm(image_BID, image_mod[scale], image_mod[shift]);
    const at::Tensor text = modulated_norm(text_BTD, text_mod[scale], text_mod[shift]);
    const auto joint = [&](auto& of_text, auto& text_norm, auto& of_image, auto& image_norm) {
        return concatenate(rms_norm_rotate(of_text->forward(text), text_norm->weight, rotary.cosine_LK.narrow(0, 0, T),
                                           rotary.sine_LK.narrow(0, 0, T)),
                           rms_norm_rotate(of_image->forward(image), image_norm->weight,
                                           rotary.cosine_LK.narrow(0, T, I), rotary.sine_LK.narrow(0, T, I)),
                           2);
    };
    const at::Tensor q = joint(attn_->add_q_proj, attn_->norm_added_q, attn_->to_q, attn_->norm_q);
    const at::Tensor k = joint(attn_->add_k_proj, attn_->norm_added_k, attn_->to_k, attn_->norm_k);
    const at::Tensor v =
        concatenate(split_heads(attn_->add_v_proj->forward(text), K), split_heads(attn_->to_v->forward(image), K), 2);
    const at::Tensor attended = attention(q, k, v, detail::with_bias(bias_B11L));

    at::Tensor image_out = gated_add(image_BID, image_mod[gate], attn_->to_out->forward(attended.narrow(1, T, I)));
    at::Tensor text_out = gated_add(text_BTD, text_mod[gate], attn_->to_add_out->forward(attended.narrow(1, 0, T)));
    image_out = gated_add(image_out, image_mod[gate_mlp],
                          ff_->forward(modulated_norm(image_out, image_mod[scale_mlp], image_mod[shift_mlp])));
    text_out = gated_add(text_out, text_mod[gate_mlp],
                         ff_context_->forward(modulated_norm(text_out, text_mod[scale_mlp], text_mod[shift_mlp])));
    return {image_out, text_out};
}

STRATA_INLINE SingleProjections::SingleProjections(std::int64_t D, std::int64_t K)
    : norm_q(register_module("norm_q", std::make_shared<HeadNorm>(K))),
      norm_k(register_module("norm_k", std::make_shared<HeadNorm>(K))),
      to_q(register_module("to_q", std::make_shared<Linear>(D, D))),
      to_k(register_module("to_k", std::make_shared<Linear>(D, D))),
      to_v(register_module("to_v", std::make_shared<Linear>(D, D))) {}

STRATA_INLINE SingleBlock::SingleBlock(std::int64_t heads, std::int64_t K, FluxStart start)
    : norm_(register_module("norm", std::make_shared<Modulation>(heads * K, 3, start))),
      proj_mlp_(register_module("proj_mlp", std::make_shared<Linear>(heads * K, 4 * heads * K))),
      proj_out_(register_module("proj_out", std::make_shared<Linear>(5 * heads * K, heads * K))),
      attn_(register_module("attn", std::make_shared<SingleProjections>(heads * K, K))) {}

STRATA_INLINE at::Tensor SingleBlock::forward(const at::Tensor& x_BLD, const at::Tensor& conditioning_BD,
                                              const RotaryTable& rotary, const at::Tensor& bias_B11L) {
    enum { shift, scale, gate };
    const std::vector<at::Tensor> mod = norm_->forward(conditioning_BD);
    const std::int64_t K = attn_->norm_q->weight.size(0);
    const at::Tensor x = modulated_norm(x_BLD, mod[scale], mod[shift]);
    const at::Tensor q =
        rms_norm_rotate(attn_->to_q->forward(x), attn_->norm_q->weight, rotary.cosine_LK, rotary.sine_LK);
    const at::Tensor k =
        rms_norm_rotate(attn_->to_k->forward(x), attn_->norm_k->weight, rotary.cosine_LK, rotary.sine_LK);
    const at::Tensor attended = attention(q, k, split_heads(attn_->to_v->forward(x), K), detail::with_bias(bias_B11L));
    const at::Tensor hidden = gelu_tanh(proj_mlp_->forward(x));
    return gated_add(x_BLD, mod[gate], proj_out_->forward_of_two(attended, hidden));
}

}  // namespace strata::models
