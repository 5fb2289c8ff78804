#pragma once
// strata/models/impl/resnet_block.ipp - bodies of the convolutional blocks.

#include <strata/models/impl/norms.ipp>
#include <strata/models/resnet_block.hpp>

namespace strata::models {

namespace detail {

inline std::shared_ptr<Conv2d> convolution(std::int64_t C_in, std::int64_t C_out, std::int64_t edge,
                                           std::int64_t stride, std::int64_t border) {
    return std::make_shared<Conv2d>(C_in, C_out, edge, stride, border);
}

}  // namespace detail

STRATA_INLINE ResnetBlock::ResnetBlock(std::int64_t C_in, std::int64_t C_out, std::int64_t time_width,
                                       std::int64_t groups, double eps)
    : norm1_(register_module("norm1", std::make_shared<GroupNorm>(groups, C_in, eps))),
      norm2_(register_module("norm2", std::make_shared<GroupNorm>(groups, C_out, eps))),
      conv1_(register_module("conv1", detail::convolution(C_in, C_out, 3, 1, 1))),
      conv2_(register_module("conv2", detail::convolution(C_out, C_out, 3, 1, 1))) {
    if (time_width > 0) time_emb_proj_ = register_module("time_emb_proj", std::make_shared<Linear>(time_width, C_out));
    if (C_in != C_out) conv_shortcut_ = register_module("conv_shortcut", detail::convolution(C_in, C_out, 1, 1, 0));
}

STRATA_INLINE at::Tensor ResnetBlock::forward(const at::Tensor& x_BChw, const at::Tensor& time_BE) {
    at::Tensor h = conv1_->forward(norm1_->silu_of_norm(x_BChw));
    if (time_emb_proj_) h = h + time_emb_proj_->forward(at::silu(time_BE)).unsqueeze(2).unsqueeze(3);
    h = conv2_->forward(norm2_->silu_of_norm(h));
    return (conv_shortcut_ ? conv_shortcut_->forward(x_BChw) : x_BChw) + h;
}

STRATA_INLINE Downsample::Downsample(std::int64_t C, Border border)
    : border_(border),
      conv_(register_module("conv", detail::convolution(C, C, 3, 2, border == Border::all_sides ? 1 : 0))) {}

STRATA_INLINE at::Tensor Downsample::forward(const at::Tensor& x_BChw) {
    if (border_ == Border::all_sides) return conv_->forward(x_BChw);
    return conv_->forward(at::constant_pad_nd(x_BChw, {0, 1, 0, 1}));
}

STRATA_INLINE Upsample::Upsample(std::int64_t C) : conv_(register_module("conv", detail::convolution(C, C, 3, 1, 1))) {}

STRATA_INLINE at::Tensor Upsample::forward(const at::Tensor& x_BChw, std::int64_t height, std::int64_t width) {
    if (height == 0) height = 2 * x_BChw.size(2);
    if (width == 0) width = 2 * x_BChw.size(3);
    return conv_->forward(at::upsample_nearest2d(x_BChw, {height, width}));
}

}  // namespace strata::models
