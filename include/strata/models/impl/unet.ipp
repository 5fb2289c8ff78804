#pragma once
// strata/models/impl/unet.ipp - bodies of Unet.

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/models/impl/unet_blocks.ipp>
#include <strata/models/impl/unet_options.ipp>
#include <strata/models/unet.hpp>

namespace strata::models {

namespace detail {

inline UnetOptions fitting(UnetOptions options) {
    std::string all;
    for (const std::string& problem : unet_problems(options)) all += (all.empty() ? "" : "; ") + problem;
    if (!all.empty())
        throw Error{
            Errc::bad_model_options, "UnetOptions fit no U-Net: " + all,
            "begin with sdxl_unet_options() or sd15_unet_options(), or read a config.json with load_unet_options()"};
    return options;
}

}  // namespace detail

STRATA_INLINE Unet::Unet(UnetOptions options) : options_(detail::fitting(std::move(options))) {
    const std::int64_t C = options_.levels.front().channels;
    const std::int64_t T = options_.time_dim();
    conv_in_ = register_module("conv_in", detail::convolution(options_.in_channels, C, 3, 1, 1));
    time_embedding_ = register_module("time_embedding", std::make_shared<UnetEmbedding>(C, T));
    if (options_.addition_time_dim > 0)
        add_embedding_ =
            register_module("add_embedding", std::make_shared<UnetEmbedding>(options_.addition_input_dim, T));
    const auto add_blocks = [&](const char* name, auto& blocks, const std::vector<UnetBlockShape>& shapes) {
        using Block = typename std::decay_t<decltype(blocks)>::value_type::element_type;
        torch::nn::ModuleList list;
        for (const UnetBlockShape& shape : shapes) {
            blocks.push_back(std::make_shared<Block>(options_, shape));
            list->push_back(blocks.back());
        }
        register_module(name, list);
    };
    add_blocks("down_blocks", down_blocks_, down_block_shapes(options_));
    mid_block_ = register_module("mid_block", std::make_shared<UnetMidBlock>(options_, mid_block_shape(options_)));
    add_blocks("up_blocks", up_blocks_, up_block_shapes(options_));
    conv_norm_out_ =
        register_module("conv_norm_out", std::make_shared<GroupNorm>(options_.norm_groups, C, options_.norm_eps));
    conv_out_ = register_module("conv_out", detail::convolution(C, options_.out_channels, 3, 1, 1));
}

STRATA_INLINE void Unet::check_inputs(const at::Tensor& sample_BChw, const at::Tensor& timestep_B,
                                      const at::Tensor& context_BSE, const UnetAddition& addition) const {
    const auto is = [](const at::Tensor& tensor, const std::vector<std::int64_t>& shape) {
        if (!tensor.defined() || tensor.dim() != static_cast<std::int64_t>(shape.size())) return false;
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (shape[i] >= 0 ? tensor.sizes()[i] != shape[i] : tensor.sizes()[i] < 1) return false;
        return true;
    };
    const auto refuse = [](const std::string& name, const at::Tensor& tensor, const std::string& shape) {
        std::ostringstream got;
        if (tensor.defined())
            got << "of shape " << tensor.sizes();
        else
            got << "that is undefined";
        throw Error{Errc::bad_value, "a U-Net got a " + name + ' ' + got.str() + ", and takes one of shape " + shape,
                    "check which model, encoders and recipe belong together"};
    };
    const std::int64_t B = sample_BChw.defined() && sample_BChw.dim() > 0 ? sample_BChw.size(0) : 1;
    const std::string batch = "[" + std::to_string(B) + ", ";
    if (!is(sample_BChw, {-1, options_.in_channels, -1, -1}))
        refuse("sample", sample_BChw, "[B, " + std::to_string(options_.in_channels) + ", h, w]");
    if (!is(timestep_B, {B})) refuse("timestep", timestep_B, "[" + std::to_string(B) + "]");
    if (!is(context_BSE, {B, -1, options_.cross_attention_dim}))
        refuse("context", context_BSE, batch + "S, " + std::to_string(options_.cross_attention_dim) + "]");
    if (options_.addition_time_dim == 0) return;
    if (!is(addition.pooled_BP, {B, options_.pooled_dim()}))
        refuse("pooled caption", addition.pooled_BP, batch + std::to_string(options_.pooled_dim()) + "]");
    if (!is(addition.time_ids_B6, {B, 6})) refuse("tensor of time ids", addition.time_ids_B6, batch + "6]");
}

STRATA_INLINE at::Tensor Unet::embed(const at::Tensor& timestep_B, const UnetAddition& addition) {
    const at::ScalarType type = conv_in_->weight.scalar_type();
    at::Tensor time = time_embedding_->forward(unet_features(timestep_B, options_.levels.front().channels).to(type));
    if (!add_embedding_) return time;
    const at::Tensor ids = unet_features(addition.time_ids_B6.flatten(), options_.addition_time_dim);
    const at::Tensor both = at::cat({addition.pooled_BP.to(type), ids.view({timestep_B.size(0), -1}).to(type)}, 1);
    return time + add_embedding_->forward(both);
}

STRATA_INLINE at::Tensor Unet::forward(const at::Tensor& sample_BChw, const at::Tensor& timestep_B,
                                       const at::Tensor& context_BSE, const UnetAddition& addition) {
    check_inputs(sample_BChw, timestep_B, context_BSE, addition);
    const at::ScalarType type = conv_in_->weight.scalar_type();
    const at::Tensor time = embed(timestep_B, addition);
    const at::Tensor context = context_BSE.to(type);
    at::Tensor x = conv_in_->forward(sample_BChw.to(type));
    std::vector<at::Tensor> skips{x};
    for (const auto& block : down_blocks_) x = block->forward(x, time, context, skips);
    x = mid_block_->forward(x, time, context);
    for (const auto& block : up_blocks_) x = block->forward(x, time, context, skips);
    x = conv_out_->forward(at::silu(conv_norm_out_->forward(x)));
    return x.to(sample_BChw.scalar_type());
}

}  // namespace strata::models
