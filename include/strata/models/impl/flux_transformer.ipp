#pragma once
// strata/models/impl/flux_transformer.ipp - bodies of FluxTransformer.

#include <limits>
#include <tuple>
#include <type_traits>

#include <strata/core/error.hpp>
#include <strata/models/flux_transformer.hpp>
#include <strata/models/fused_ops.hpp>
#include <strata/models/impl/flux_blocks.ipp>
#include <strata/models/impl/flux_conditioning.ipp>
#include <strata/models/impl/rotary.ipp>

namespace strata::models {

namespace detail {

/// Sentences about one thing, thrown together.
class FluxProblems {
public:
    void add(const std::string& problem) { all_ += (all_.empty() ? "" : "; ") + problem; }
    void finish(Errc code, const std::string& fix) const {
        if (!all_.empty()) throw Error{code, all_, fix};
    }

private:
    std::string all_;
};

inline std::string shape_text(at::IntArrayRef sizes) {
    std::string text = "(";
    for (const std::int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + ")";
}

inline void check_flux_options(const FluxOptions& options) {
    FluxProblems problems;
    const auto at_least = [&](const char* name, std::int64_t value, std::int64_t least) {
        if (value < least)
            problems.add("FluxOptions::" + std::string{name} + " is " + std::to_string(value) + ", and at least " +
                         std::to_string(least) + " is needed");
    };
    at_least("token_values", options.token_values, 1);
    at_least("output_values", options.output_values, 1);
    at_least("text_width", options.text_width, 1);
    at_least("pooled_width", options.pooled_width, 1);
    at_least("heads", options.heads, 1);
    at_least("double_blocks", options.double_blocks, 0);
    at_least("single_blocks", options.single_blocks, 0);
    for (const std::int64_t axis : options.rotary_axes)
        if (axis < 2 || axis % 2 != 0)
            problems.add("FluxOptions::rotary_axes has " + std::to_string(axis) + ", and an axis is even");
    problems.finish(Errc::bad_model_options, "give the sizes of the model's config.json, as read_flux_config() does");
}

inline void check_flux_input(const FluxInput& input, const FluxOptions& options) {
    FluxProblems problems;
    const auto check = [&](const char* name, const at::Tensor& tensor, const std::vector<std::int64_t>& shape) {
        if (!tensor.defined()) {
            problems.add("FluxInput::" + std::string{name} + " is missing");
        } else if (tensor.sizes() != at::IntArrayRef{shape}) {
            problems.add("FluxInput::" + std::string{name} + " is " + shape_text(tensor.sizes()) + ", and not " +
                         shape_text(shape));
        }
    };
    // What stands at the sizes that are free, if it is there to be asked.
    const auto size = [](const at::Tensor& tensor, std::int64_t dim) {
        return tensor.defined() && tensor.dim() > dim ? tensor.size(dim) : 0;
    };
    const std::int64_t B = size(input.tokens_BIP, 0);
    const std::int64_t I = size(input.tokens_BIP, 1);
    const std::int64_t T = size(input.text_BTE, 1);
    check("tokens_BIP", input.tokens_BIP, {B, I, options.token_values});
    check("text_BTE", input.text_BTE, {B, T, options.text_width});
    check("pooled_BE", input.pooled_BE, {B, options.pooled_width});
    check("sigma_B", input.sigma_B, {B});
    if (options.has_guidance) check("guidance_B", input.guidance_B, {B});
    if (!options.has_guidance && input.guidance_B.defined())
        problems.add("FluxInput::guidance_B is given, and this model has no guidance embedding");
    check("image_ids_I3", input.image_ids_I3, {I, 3});
    if (input.text_ids_T3.defined()) check("text_ids_T3", input.text_ids_T3, {T, 3});
    if (input.text_mask_BT.defined()) check("text_mask_BT", input.text_mask_BT, {B, T});
    problems.finish(Errc::bad_value, "give what the model's config.json and docs/models.md say that it takes");
}

/// 0 where a key is looked at and -inf where it is not, (B, 1, 1, T + I); undefined without a mask.
inline at::Tensor key_bias(const at::Tensor& text_mask_BT, std::int64_t I) {
    if (!text_mask_BT.defined()) return {};
    const at::Tensor hidden_BT = text_mask_BT.to(at::kBool).logical_not();
    at::Tensor bias = at::zeros({hidden_BT.size(0), hidden_BT.size(1) + I}, hidden_BT.options().dtype(at::kFloat));
    bias.narrow(1, 0, hidden_BT.size(1)).masked_fill_(hidden_BT, -std::numeric_limits<float>::infinity());
    return bias.unsqueeze(1).unsqueeze(1);
}

}  // namespace detail

STRATA_INLINE FluxTransformer::FluxTransformer(const FluxOptions& options) : flux_options_(options) {
    detail::check_flux_options(options);
    const std::int64_t D = options.width();
    time_text_embed_ = register_module(
        "time_text_embed",
        std::make_shared<TimeTextEmbedding>(options.pooled_width, D, options.has_guidance, options.start));
    context_embedder_ = register_module("context_embedder", std::make_shared<Linear>(options.text_width, D));
    x_embedder_ = register_module("x_embedder", std::make_shared<Linear>(options.token_values, D));
    const auto add_blocks = [&](const char* name, auto& blocks, std::int64_t count) {
        using Block = typename std::decay_t<decltype(blocks)>::value_type::element_type;
        torch::nn::ModuleList list;
        for (std::int64_t i = 0; i < count; ++i) {
            blocks.push_back(std::make_shared<Block>(options.heads, options.head_width(), options.start));
            list->push_back(blocks.back());
        }
        register_module(name, list);
    };
    add_blocks("transformer_blocks", double_blocks_, options.double_blocks);
    add_blocks("single_transformer_blocks", single_blocks_, options.single_blocks);
    norm_out_ = register_module("norm_out", std::make_shared<Modulation>(D, 2, options.start));
    proj_out_ = register_module("proj_out", std::make_shared<Linear>(D, options.output_values));
    if (options.start != FluxStart::identity) return;
    torch::nn::init::zeros_(proj_out_->weight);
    torch::nn::init::zeros_(proj_out_->bias);
}

STRATA_INLINE at::Tensor FluxTransformer::forward(const FluxInput& input) {
    detail::check_flux_input(input, flux_options_);
    const std::int64_t T = input.text_BTE.size(1);
    const std::int64_t I = input.tokens_BIP.size(1);
    const at::Tensor text_ids_T3 = input.text_ids_T3.defined() ? input.text_ids_T3.cpu() : at::zeros({T, 3});
    const RotaryTable rotary = rotary_table(at::cat({text_ids_T3, input.image_ids_I3.cpu()}), flux_options_.rotary_axes,
                                            input.tokens_BIP.device());
    const at::Tensor bias_B11L = detail::key_bias(input.text_mask_BT, I);

    at::Tensor image = x_embedder_->forward(input.tokens_BIP.to(type()));
    at::Tensor text = context_embedder_->forward(input.text_BTE.to(type()));
    const at::Tensor conditioning =
        at::silu(time_text_embed_->forward(input.sigma_B, input.guidance_B, input.pooled_BE));
    for (const auto& block : double_blocks_)
        std::tie(image, text) = block->forward(image, text, conditioning, rotary, bias_B11L);
    at::Tensor both = concatenate(text, image, 1);
    for (const auto& block : single_blocks_) both = block->forward(both, conditioning, rotary, bias_B11L);
    const std::vector<at::Tensor> mod = norm_out_->forward(conditioning);  // scale first, unlike in the blocks
    image = modulated_norm(both.narrow(1, T, I), mod[0], mod[1]);
    return proj_out_->forward(image).to(input.tokens_BIP.scalar_type());
}

}  // namespace strata::models
