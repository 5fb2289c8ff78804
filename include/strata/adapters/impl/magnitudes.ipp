#pragma once
// strata/adapters/impl/magnitudes.ipp - DoRA's magnitudes in files, norms of rows, and in a model: those norms over the base weight's.

#include <limits>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <strata/weights/save_weights.hpp>

namespace strata::adapters::detail {

/// (out, ...) -> (out), fp32: the norm of each row of a weight as a matrix. A row of zeros has the least number as its norm, so that it can be divided by.
inline at::Tensor row_norms(const at::Tensor& weight) {
    const at::Tensor rows_OI = weight.detach().to(at::kFloat).flatten(1);
    return rows_OI.square().sum(std::vector<std::int64_t>{1}).sqrt().clamp_min(std::numeric_limits<float>::epsilon());
}

/// A magnitude as it is written: the model has what the rows' norms are multiplied by, and files have the norms.
///
///   base     the layer's weight: in memory when the tensor is written
///   is_peft  PEFT's shape, which is (out), of a convolution (1, out, 1, 1); LyCORIS' is (out, 1) or (out, 1, 1, 1)
inline weights::SavedTensor written_magnitude(weights::SavedTensor tensor, const at::Tensor& base, bool is_peft) {
    const std::int64_t rows = base.size(0);
    if (base.dim() == 4)
        tensor.shape = is_peft ? std::vector<std::int64_t>{1, rows, 1, 1} : std::vector<std::int64_t>{rows, 1, 1, 1};
    else
        tensor.shape = is_peft ? std::vector<std::int64_t>{rows} : std::vector<std::int64_t>{rows, 1};
    tensor.written = [base](const at::Tensor& magnitude) {
        const at::NoGradGuard no_grad;
        return magnitude.detach().to(at::kFloat).view(-1).mul(row_norms(base));
    };
    return tensor;
}

}  // namespace strata::adapters::detail
