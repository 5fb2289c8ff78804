#pragma once
// strata/models/detail/wide_product.hpp - the walk over blocks of a product whose operands are widened as they are read.

#include <algorithm>
#include <cstdint>

#include <torch/torch.h>

#include <strata/models/wide_blocks.hpp>

namespace strata::models::detail {

/// Numbers of a block of an operand, and of the result.
inline constexpr std::int64_t block_numbers = std::int64_t{1} << 18;
/// Rows, columns and terms of a block at most: BLAS is at its rate from here on.
inline constexpr std::int64_t block_edge = 1024;

/// This thread's scratch of fp32: `part` 0 and 1 are blocks of the operands, 2 of the result.
inline at::Tensor wide_scratch(std::int64_t part, std::int64_t rows, std::int64_t columns) {
    thread_local const at::Tensor scratch = at::empty({3, block_numbers}, at::kFloat);
    return scratch.select(0, part).narrow(0, 0, rows * columns).view({rows, columns});
}

/// A bf16 matrix as an operand: either its rows or its columns are dense.
struct WideMatrix {
    const bf16* numbers = nullptr;
    std::int64_t row_stride = 0, column_stride = 0;

    /// of x (rows, columns), which stays where it is while this is used
    explicit WideMatrix(const at::Tensor& x)
        : numbers{static_cast<const bf16*>(x.data_ptr())}, row_stride{x.stride(0)}, column_stride{x.stride(1)} {}

    [[nodiscard]] at::Tensor block(std::int64_t part, std::int64_t row, std::int64_t rows, std::int64_t column,
                                   std::int64_t columns) const {
        const bf16* from = numbers + row * row_stride + column * column_stride;
        const bool is_transposed = column_stride != 1;
        at::Tensor wide = is_transposed ? wide_scratch(part, columns, rows) : wide_scratch(part, rows, columns);
        kernels::widen(wide.data_ptr<float>(), from, wide.size(0), wide.size(1),
                       is_transposed ? column_stride : row_stride);
        return is_transposed ? wide.t() : wide;
    }
};

/// x as WideMatrix takes it: itself, or a copy if neither rows nor columns are dense.
inline at::Tensor dense_one_way(const at::Tensor& x) {
    return x.stride(1) == 1 || x.stride(0) == 1 ? x : x.contiguous();
}

/// The windows of a picture as an operand, or transposed.
struct WidePatches {
    const bf16* picture = nullptr;
    kernels::PatchGrid grid;
    bool is_transposed = false;

    [[nodiscard]] at::Tensor block(std::int64_t part, std::int64_t row, std::int64_t rows, std::int64_t column,
                                   std::int64_t columns) const {
        if (is_transposed) {
            std::swap(row, column);
            std::swap(rows, columns);
        }
        at::Tensor wide = wide_scratch(part, rows, columns);
        kernels::widen_patches(wide.data_ptr<float>(), picture, grid, row, rows, column, columns);
        return is_transposed ? wide.t() : wide;
    }
};

/// A sum of products has one of these for each: a (M, terms) times b (terms, N).
template <class A, class B>
struct WideTerm {
    A a;
    B b;
    std::int64_t terms = 0;
};

/// The sum of all products, (M, N) of fp32, block by block: take(row, rows, column, columns, numbers) gets each when it is
/// complete, dense. The order of sums is that of the terms.
template <class Terms, class Take>
void for_wide_blocks(std::int64_t M, std::int64_t N, const Terms& sum, const Take& take) {
    const at::NoGradGuard no_grad;
    const std::int64_t m =
        std::min({M, block_edge, std::max(std::int64_t{512}, block_numbers / std::max(N, std::int64_t{1}))});
    if (M == 0 || N == 0) return;
    const std::int64_t n = std::min({N, block_edge, block_numbers / m});
    const std::int64_t k = std::min(block_edge, block_numbers / std::max(m, n));
    for (std::int64_t row = 0; row < M; row += m)
        for (std::int64_t column = 0; column < N; column += n) {
            const std::int64_t rows = std::min(m, M - row), columns = std::min(n, N - column);
            at::Tensor total = wide_scratch(2, rows, columns);
            bool is_first = true;
            for (const auto& term : sum)
                for (std::int64_t at = 0; at < term.terms; at += k) {
                    const std::int64_t count = std::min(k, term.terms - at);
                    const at::Tensor a = term.a.block(0, row, rows, at, count);
                    const at::Tensor b = term.b.block(1, at, count, column, columns);
                    if (is_first) {
                        at::mm_out(total, a, b);
                    } else {
                        at::addmm_out(total, total, a, b);
                    }
                    is_first = false;
                }
            if (is_first) total.zero_();
            take(row, rows, column, columns, total.data_ptr<float>());
        }
}

/// Writes blocks into y, whose rows are dense; biases as kernels::round_block takes them.
struct RoundedInto {
    bf16* y = nullptr;
    std::int64_t stride = 0;
    const bf16* of_rows = nullptr;
    const bf16* of_columns = nullptr;

    explicit RoundedInto(const at::Tensor& y_) : y{static_cast<bf16*>(y_.data_ptr())}, stride{y_.stride(0)} {}
    void operator()(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns,
                    const float* numbers) const {
        kernels::round_block(y + row * stride + column, stride, numbers, rows, columns,
                             of_rows != nullptr ? of_rows + row : nullptr,
                             of_columns != nullptr ? of_columns + column : nullptr);
    }
};

}  // namespace strata::models::detail
