#pragma once
// strata/models/impl/winograd_convolution.ipp - the walk over blocks of tiles and results, and the three products of each.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include <strata/models/detail/winograd_blocks.hpp>
#include <strata/models/impl/wide_convolution.ipp>
#include <strata/models/winograd_convolution.hpp>
#include <strata/models/winograd_tiles.hpp>

namespace strata::models {

namespace detail {

/// Calls run(begin, end) for parts of [0, n) on libtorch's threads.
template <class Run>
void share(std::int64_t n, const Run& run) {
    at::parallel_for(0, n, 8, run);
}

/// What a block is worked out in, of fp32: v (16, C, tiles) of pictures, u (16, results, C) of windows, m (16, results, tiles) of results.
struct WinogradScratch {
    const WinogradBlocks& blocks;
    std::int64_t C;
    at::Tensor all_v, all_u, all_m;

    WinogradScratch(const WinogradBlocks& of, std::int64_t channels, const at::TensorOptions& options)
        : blocks{of},
          C{channels},
          all_v{at::empty({16 * C * of.tiles(of.rows)}, options)},
          all_u{at::empty({16 * of.results * C}, options)},
          all_m{at::empty({16 * of.results * of.tiles(of.rows)}, options)} {}

    /// The transformed pictures x of tile rows [row, row + rows).
    [[nodiscard]] at::Tensor v(const at::Tensor& x, std::int64_t row, std::int64_t rows) const {
        const std::int64_t P = blocks.tiles(rows);
        at::Tensor to = part(all_v, C, P);
        share(C, [&](std::int64_t begin, std::int64_t end) {
            kernels::winograd_pictures(to.data_ptr<float>() + begin * P, C * P, x.data_ptr<float>(), C, blocks.grid,
                                       begin, end - begin, row, rows);
        });
        return to;
    }
    [[nodiscard]] at::Tensor u(std::int64_t results) const { return part(all_u, results, C); }
    [[nodiscard]] at::Tensor m(std::int64_t results, std::int64_t rows) const {
        return part(all_m, results, blocks.tiles(rows));
    }

private:
    static at::Tensor part(const at::Tensor& of, std::int64_t rows, std::int64_t columns) {
        return of.narrow(0, 0, 16 * rows * columns).view({16, rows, columns});
    }
};

/// y (B, O, ..) of x (B, C, h, w): forward, and the gradient of pictures.
inline at::Tensor winograd_forward(const at::Tensor& x, const kernels::WinogradWindows& windows, std::int64_t O,
                                   const float* bias, const kernels::WinogradGrid& grid) {
    const at::NoGradGuard no_grad;
    const std::int64_t C = x.size(1);
    const WinogradBlocks blocks{grid, x.size(0), C, O};
    at::Tensor y = at::empty({x.size(0), O, grid.out_height(), grid.out_width()}, x.options());
    const WinogradScratch scratch{blocks, C, x.options()};
    for (std::int64_t row = 0; row < blocks.all_rows; row += blocks.rows) {
        const std::int64_t rows = std::min(blocks.rows, blocks.all_rows - row), P = blocks.tiles(rows);
        const at::Tensor v = scratch.v(x, row, rows);
        for (std::int64_t result = 0; result < O; result += blocks.results) {
            const std::int64_t results = std::min(blocks.results, O - result);
            const at::Tensor u = scratch.u(results);
            share(results, [&](std::int64_t begin, std::int64_t end) {
                kernels::winograd_windows(u.data_ptr<float>() + begin * C, results * C, windows, result + begin,
                                          end - begin, C);
            });
            const at::Tensor m = scratch.m(results, rows);
            for (std::int64_t e = 0; e < 16; ++e) {
                at::Tensor out = m[e];
                at::mm_out(out, u[e], v[e]);
            }
            share(results, [&](std::int64_t begin, std::int64_t end) {
                kernels::winograd_results(y.data_ptr<float>(), O, grid, m.data_ptr<float>() + begin * P, results * P,
                                          bias, result + begin, end - begin, row, rows);
            });
        }
    }
    return y;
}

/// The gradient of a weight (O, C, 3, 3) of pictures x and grad_y.
inline at::Tensor winograd_weight_gradient(const at::Tensor& x, const at::Tensor& grad_y,
                                           const kernels::WinogradGrid& grid) {
    const at::NoGradGuard no_grad;
    const std::int64_t C = x.size(1), O = grad_y.size(1);
    const WinogradBlocks blocks{grid, x.size(0), C, O};
    at::Tensor grad = at::empty({O, C, 3, 3}, x.options());
    const WinogradScratch scratch{blocks, C, x.options()};
    at::Tensor v;
    for (std::int64_t result = 0; result < O; result += blocks.results) {
        const std::int64_t results = std::min(blocks.results, O - result);
        const at::Tensor u = scratch.u(results);
        for (std::int64_t row = 0; row < blocks.all_rows; row += blocks.rows) {
            const std::int64_t rows = std::min(blocks.rows, blocks.all_rows - row), P = blocks.tiles(rows);
            const bool has_all = blocks.rows == blocks.all_rows;
            if (!has_all || result == 0) v = scratch.v(x, row, rows);
            const at::Tensor m = scratch.m(results, rows);
            share(results, [&](std::int64_t begin, std::int64_t end) {
                kernels::winograd_result_gradients(m.data_ptr<float>() + begin * P, results * P,
                                                   grad_y.data_ptr<float>(), O, grid, result + begin, end - begin, row,
                                                   rows);
            });
            for (std::int64_t e = 0; e < 16; ++e) {
                at::Tensor out = u[e];
                if (row == 0)
                    at::mm_out(out, m[e], v[e].t());
                else
                    at::addmm_out(out, out, m[e], v[e].t());
            }
        }
        share(results, [&](std::int64_t begin, std::int64_t end) {
            kernels::winograd_window_gradients(grad.data_ptr<float>() + (result + begin) * C * 9,
                                               u.data_ptr<float>() + begin * C, results * C, end - begin, C);
        });
    }
    return grad;
}

struct WinogradConvolution : torch::autograd::Function<WinogradConvolution> {
    using Context = torch::autograd::AutogradContext;
    using List = torch::autograd::variable_list;

    static at::Tensor forward(Context* ctx, const at::Tensor& x_, const at::Tensor& weight_, const at::Tensor& bias_,
                              std::int64_t padding) {
        const at::Tensor x = x_.contiguous(), weight = weight_.contiguous(), bias = bias_.contiguous();
        const std::int64_t O = weight.size(0), C = weight.size(1);
        ctx->save_for_backward({if_needed(x, weight_), if_needed(weight, x_)});
        ctx->saved_data["sizes"] = std::vector<std::int64_t>{x.size(2), x.size(3), padding};
        return winograd_forward(x, {weight.data_ptr<float>(), C * 9, 9, false}, O,
                                bias.numel() > 0 ? bias.data_ptr<float>() : nullptr,
                                {.height = x.size(2), .width = x.size(3), .padding = padding});
    }

    static List backward(Context* ctx, const List& grads) {
        const List saved = ctx->get_saved_variables();
        const at::Tensor &x = saved[0], &weight = saved[1], grad_y = grads[0].contiguous();
        const std::vector<std::int64_t> n = ctx->saved_data["sizes"].toIntVector();
        const std::int64_t padding = n[2];
        at::Tensor grad_x, grad_weight, grad_bias;
        if (ctx->needs_input_grad(0)) {
            // A convolution of grad_y under the turned windows, rows and columns exchanged.
            const std::int64_t C = weight.size(1);
            grad_x = winograd_forward(grad_y, {weight.data_ptr<float>(), 9, C * 9, true}, C, nullptr,
                                      {.height = grad_y.size(2), .width = grad_y.size(3), .padding = 2 - padding});
        }
        if (ctx->needs_input_grad(1))
            grad_weight = winograd_weight_gradient(x, grad_y, {.height = n[0], .width = n[1], .padding = padding});
        if (ctx->needs_input_grad(2)) grad_bias = grad_y.sum(at::IntArrayRef{0, 2, 3});
        return {grad_x, grad_weight, grad_bias, at::Tensor()};
    }
};

}  // namespace detail

STRATA_INLINE bool takes_winograd(const at::Tensor& x, const at::Tensor& weight, const ConvolutionForm& form) {
    constexpr std::int64_t least_channels = 128, least_tiles = 64;
    if (x.dim() != 4 || weight.dim() != 4 || !x.is_cpu() || !weight.is_cpu() || x.scalar_type() != at::kFloat ||
        weight.scalar_type() != at::kFloat)
        return false;
    const auto both = [](const std::array<std::int64_t, 2>& numbers, std::int64_t number) {
        return numbers[0] == number && numbers[1] == number;
    };
    if (weight.size(2) != 3 || weight.size(3) != 3 || !both(form.stride, 1) || !both(form.dilation, 1) ||
        form.padding[0] != form.padding[1] || form.padding[0] > 2)
        return false;
    if (weight.size(0) < least_channels || weight.size(1) < least_channels || x.size(1) != weight.size(1)) return false;
    const kernels::WinogradGrid grid{.height = x.size(2), .width = x.size(3), .padding = form.padding[0]};
    return grid.height > 0 && grid.width > 0 && grid.out_height() > 0 && grid.out_width() > 0 &&
           x.size(0) * grid.tile_rows() * grid.row_tiles() >= least_tiles;
}

STRATA_INLINE at::Tensor winograd_conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                         std::int64_t padding) {
    detail::check_convolution(x, weight, bias, {.padding = {padding, padding}});
    if (weight.size(2) != 3 || weight.size(3) != 3 || padding > 2 || x.numel() == 0 || weight.numel() == 0 ||
        x.scalar_type() != at::kFloat || weight.scalar_type() != at::kFloat || !x.is_cpu() || !weight.is_cpu())
        throw Error{Errc::bad_value,
                    "a convolution by Winograd's tiles got pictures of " + c10::str(x.sizes()) + ", a weight of " +
                        c10::str(weight.sizes()) + " and a padding of " + std::to_string(padding),
                    "give fp32 on the CPU, windows of 3 x 3, a padding of 0, 1 or 2 and no size of 0, or call "
                    "strata::models::conv2d()"};
    return detail::WinogradConvolution::apply(x, weight, detail::or_none(bias, x), padding);
}

}  // namespace strata::models
