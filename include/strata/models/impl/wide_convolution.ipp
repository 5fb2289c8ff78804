#pragma once
// strata/models/impl/wide_convolution.ipp - a convolution's three products over the windows of its pictures.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/models/detail/wide_product.hpp>
#include <strata/models/impl/wide_products.ipp>
#include <strata/models/wide_convolution.hpp>

namespace strata::models {

namespace detail {

struct WideConvolution : torch::autograd::Function<WideConvolution> {
    using Context = torch::autograd::AutogradContext;
    using List = torch::autograd::variable_list;

    static at::Tensor forward(Context* ctx, const at::Tensor& x_, const at::Tensor& weight_, const at::Tensor& bias_,
                              const ConvolutionForm& form) {
        const at::Tensor x = x_.contiguous(), weight = weight_.contiguous(), bias = bias_.contiguous();
        const kernels::PatchGrid grid = grid_of(x, weight, form);
        at::Tensor y = at::empty({x.size(0), weight.size(0), grid.out_height(), grid.out_width()}, x.options());
        const at::Tensor w = weight.flatten(1);  // (O, C kh kw)
        for (std::int64_t b = 0; b < x.size(0); ++b) {
            RoundedInto take{y[b].flatten(1)};
            take.of_rows = numbers_or_none(bias);
            const std::array sum{WideTerm<WideMatrix, WidePatches>{WideMatrix{w}, patches(x, b, grid), grid.rows()}};
            for_wide_blocks(w.size(0), grid.columns(), sum, take);
        }
        ctx->save_for_backward({if_needed(x, weight_), if_needed(weight, x_)});
        ctx->saved_data["sizes"] = std::vector<std::int64_t>{
            grid.channels, grid.height,    grid.width,     grid.kernel_height, grid.kernel_width, grid.stride_y,
            grid.stride_x, grid.padding_y, grid.padding_x, grid.dilation_y,    grid.dilation_x};
        return y;
    }

    static List backward(Context* ctx, const List& grads) {
        const List saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1], grad = grads[0].contiguous();
        const std::vector<std::int64_t> n = ctx->saved_data["sizes"].toIntVector();
        const kernels::PatchGrid grid{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10]};
        const std::int64_t B = grad.size(0), O = grad.size(1);
        at::Tensor grad_x, grad_weight, grad_bias;
        if (ctx->needs_input_grad(0)) {
            grad_x = at::empty({B, grid.channels, grid.height, grid.width}, grad.options());
            for (std::int64_t b = 0; b < B; ++b)
                gradient_of_picture(grad_x[b].flatten(1), grad[b].flatten(1), weight.flatten(1), grid);
        }
        if (ctx->needs_input_grad(1)) {
            grad_weight = at::empty({O, grid.channels, grid.kernel_height, grid.kernel_width}, grad.options());
            std::vector<WideTerm<WideMatrix, WidePatches>> sum;  // one for each picture
            for (std::int64_t b = 0; b < B; ++b) {
                sum.push_back({WideMatrix{grad[b].flatten(1)}, patches(x, b, grid), grid.columns()});
                sum.back().b.is_transposed = true;
            }
            for_wide_blocks(O, grid.rows(), sum, RoundedInto{grad_weight.flatten(1)});
        }
        if (ctx->needs_input_grad(2)) grad_bias = sum_of_pictures(grad);
        return {grad_x, grad_weight, grad_bias, at::Tensor()};
    }

    /// (O) of (B, O, h, w), in fp32, rounded once.
    static at::Tensor sum_of_pictures(const at::Tensor& grad) {
        const at::Tensor total = at::zeros({grad.size(1)}, at::kFloat);
        for (std::int64_t b = 0; b < grad.size(0); ++b)
            for_widened(grad[b].flatten(1), [&](std::int64_t row, std::int64_t, const at::Tensor& block) {
                total.narrow(0, row, block.size(0)).add_(block.sum(1));
            });
        return total.to(grad.scalar_type());
    }

    static kernels::PatchGrid grid_of(const at::Tensor& x, const at::Tensor& weight, const ConvolutionForm& form) {
        return {.channels = x.size(1),
                .height = x.size(2),
                .width = x.size(3),
                .kernel_height = weight.size(2),
                .kernel_width = weight.size(3),
                .stride_y = form.stride[0],
                .stride_x = form.stride[1],
                .padding_y = form.padding[0],
                .padding_x = form.padding[1],
                .dilation_y = form.dilation[0],
                .dilation_x = form.dilation[1]};
    }

    static WidePatches patches(const at::Tensor& x, std::int64_t b, const kernels::PatchGrid& grid) {
        return {.picture = static_cast<const bf16*>(x.data_ptr()) + b * x.stride(0), .grid = grid};
    }

    /// grad_x (C, h w) of one picture: the windows' gradients, some channels at a time, added where the windows overlap.
    static void gradient_of_picture(const at::Tensor& grad_x, const at::Tensor& grad_y, const at::Tensor& weight,
                                    const kernels::PatchGrid& grid) {
        if (grid.is_picture()) return wide_product(grad_x, weight.t(), grad_y);
        const std::int64_t pixels = grid.height * grid.width;
        const std::int64_t most = std::clamp(4 * block_numbers / std::max(pixels, std::int64_t{1}), std::int64_t{1},
                                             std::max(std::int64_t{1}, block_edge / grid.window()));
        const std::int64_t channels = std::min(most, grid.channels);
        const at::Tensor total = at::empty({channels, pixels}, at::kFloat);
        for (std::int64_t c = 0; c < grid.channels; c += channels) {
            const std::int64_t count = std::min(channels, grid.channels - c);
            const at::Tensor columns = weight.narrow(1, c * grid.window(), count * grid.window());
            const at::Tensor numbers = total.narrow(0, 0, count).zero_();
            const std::array sum{
                WideTerm<WideMatrix, WideMatrix>{WideMatrix{columns.t()}, WideMatrix{grad_y}, weight.size(0)}};
            for_wide_blocks(
                columns.size(1), grad_y.size(1), sum,
                [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t n, const float* block) {
                    kernels::add_patches(numbers.data_ptr<float>(), block, grid, row, rows, column, n);
                });
            RoundedInto{grad_x.narrow(0, c, count)}(0, count, 0, pixels, numbers.data_ptr<float>());
        }
    }
};

/// Throws Errc::bad_value for what the kernels, which take pointers, would read beyond.
inline void check_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              const ConvolutionForm& form) {
    const bool has_shapes = x.dim() == 4 && weight.dim() == 4 && x.size(1) == weight.size(1) &&
                            (!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)));
    const auto at_least = [](const std::array<std::int64_t, 2>& numbers, std::int64_t least) {
        return numbers[0] >= least && numbers[1] >= least;
    };
    const bool has_form = at_least(form.stride, 1) && at_least(form.padding, 0) && at_least(form.dilation, 1);
    const auto fits = [&](std::int64_t i) {
        const auto a = static_cast<std::size_t>(i);
        return weight.size(2 + i) >= 1 &&
               form.dilation[a] * (weight.size(2 + i) - 1) < x.size(2 + i) + 2 * form.padding[a];
    };
    if (has_shapes && has_form && fits(0) && fits(1)) return;
    throw Error{
        Errc::bad_value,
        "a convolution got pictures of " + c10::str(x.sizes()) + ", a weight of " + c10::str(weight.sizes()) +
            (bias.defined() ? " and a bias of " + c10::str(bias.sizes()) : std::string{}) +
            (has_form ? "" : ", and a stride, dilation or padding below the least"),
        "give pictures (batch, channels, height, width) no smaller than the window with their padding, a weight "
        "(out, channels, height, width) of as many channels, and a bias (out) or none"};
}

}  // namespace detail

STRATA_INLINE at::Tensor wide_conv2d(const at::Tensor& x_BChw, const at::Tensor& weight_OCkk, const at::Tensor& bias_O,
                                     const ConvolutionForm& form) {
    detail::check_convolution(x_BChw, weight_OCkk, bias_O, form);
    return detail::WideConvolution::apply(x_BChw, weight_OCkk, detail::or_none(bias_O, x_BChw), form);
}

}  // namespace strata::models
