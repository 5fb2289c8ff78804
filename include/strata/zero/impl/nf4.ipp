#pragma once
// strata/zero/impl/nf4.ipp - 4-bit weights dequantised by operations of libtorch, where the device is not the CPU.

#include <algorithm>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/mul.h>

#include <strata/zero/codecs/nf4.hpp>

namespace strata {

STRATA_INLINE void Nf4::codec::dequantise_on_device(const at::Tensor& packed, zero::MatrixShape shape,
                                                    const at::Tensor& values) {
    const std::int64_t numel = shape.numel();
    const std::int64_t blocks = blocks_of(numel);
    const at::Tensor largest = zero::detail::packed_as(packed, 0, blocks, at::kFloat);
    const at::Tensor codes = packed.narrow(0, blocks * static_cast<std::int64_t>(sizeof(float)), (numel + 1) / 2);
    float table[16];
    std::copy(levels, levels + 16, table);
    const at::Tensor level_of =
        at::from_blob(table, {16}, at::TensorOptions{}.dtype(at::kFloat)).clone().to(packed.device());
    // Of blocks of n weights each: (blocks, n / 2) bytes become (blocks, n) weights.
    const auto put = [&](std::int64_t first_block, std::int64_t count, std::int64_t n) {
        if (count == 0) return;
        const std::int64_t bytes = (n + 1) / 2;
        const at::Tensor of = codes.narrow(0, first_block * half, count * bytes).view({count, bytes});
        const at::Tensor magnitude = largest.narrow(0, first_block, count).view({count, 1});
        const at::Tensor to = values.narrow(0, first_block * block, count * n).view({count, n});
        const auto pick = [&](const at::Tensor& which, std::int64_t begin, std::int64_t width) {
            const at::Tensor index = which.narrow(1, 0, width).reshape({-1}).to(at::kInt);
            to.narrow(1, begin, width).copy_(at::mul(level_of.index_select(0, index).view({count, width}), magnitude));
        };
        pick(of.bitwise_and(15), 0, bytes);
        if (n > bytes) pick(of.bitwise_right_shift(4), bytes, n - bytes);
    };
    const std::int64_t whole = numel / block;
    put(0, whole, block);
    put(whole, blocks - whole, numel - whole * block);
}

}  // namespace strata
