#pragma once
// strata/zero/impl/int8.ipp - 8-bit weights dequantised by operations of libtorch, where the device is not the CPU.

#include <ATen/ops/mul.h>

#include <strata/zero/codecs/int8.hpp>

namespace strata {

STRATA_INLINE void Int8::codec::dequantise_on_device(const at::Tensor& packed, zero::MatrixShape shape,
                                                     const at::Tensor& values) {
    const at::Tensor steps = zero::detail::packed_as(packed, 0, shape.rows, at::kFloat).view({shape.rows, 1});
    const at::Tensor codes = zero::detail::packed_as(packed, shape.rows * static_cast<std::int64_t>(sizeof(float)),
                                                     shape.numel(), at::kChar);
    values.view({shape.rows, shape.columns}).copy_(at::mul(codes.view({shape.rows, shape.columns}), steps));
}

}  // namespace strata
