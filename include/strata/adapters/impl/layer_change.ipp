#pragma once
// strata/adapters/impl/layer_change.ipp - what matrices of a file make of a weight.

#include <limits>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/kron.h>

#include <strata/adapters/impl/adapter_file.ipp>
#include <strata/adapters/impl/adapter_shapes.ipp>
#include <strata/adapters/layer_change.hpp>
#include <strata/weights/file_values.hpp>

namespace strata::adapters {

namespace detail {

/// (r, r, kh, kw), (r, O), (r, I) -> (O, I, kh, kw): the core of a Tucker decomposition with a matrix on two of its sides.
inline at::Tensor with_core(const at::Tensor& core, const at::Tensor& a_rO, const at::Tensor& b_rI) {
    return at::einsum("ijkl,ip,jq->pqkl", {core, a_rO, b_rI});
}

}  // namespace detail

STRATA_INLINE LayerChange::LayerChange(std::shared_ptr<const AdapterFile> file, const MatchedAdapter& adapter,
                                       NamedLayer layer, double strength)
    : file_{std::move(file)},
      tensors_{*adapter.tensors},
      place_{adapter.place},
      scale_{adapter.scale},
      layer_{std::move(layer)},
      strength_{strength} {}

STRATA_INLINE bool LayerChange::needs_all_rows() const noexcept {
    return tensors_.is_lokr() || tensors_.middle.has_value() ||
           (tensors_.magnitude && detail::is_of_columns(tensors_, place_.rows));
}

STRATA_INLINE at::Tensor LayerChange::read(const AdapterTensors::Tensor& tensor, at::ScalarType type) const {
    const at::Tensor values = at::empty(detail::shape_of(tensor), at::TensorOptions{}.dtype(type));
    weights::read_values(*tensor, 0, values.view(-1));
    return values;
}

STRATA_INLINE at::Tensor LayerChange::own_rows(const at::Tensor& of_file) const {
    if (place_.halves_swapped) {
        const std::int64_t half = place_.rows / 2;
        return at::cat({of_file.narrow(0, half, place_.rows - half), of_file.narrow(0, 0, half)});
    }
    return of_file.narrow(0, place_.first_row, layer_.rows());
}

STRATA_INLINE at::Tensor LayerChange::kronecker(at::ScalarType type) const {
    const auto factor = [&](const AdapterTensors::Tensor& whole, const AdapterTensors::Tensor& a,
                            const AdapterTensors::Tensor& b, const AdapterTensors::Tensor& core) {
        if (whole) return read(whole, type);
        if (core) return detail::with_core(read(core, type), read(a, type), read(b, type));
        return read(a, type).matmul(read(b, type).flatten(1));
    };
    const at::Tensor first = factor(tensors_.w1, tensors_.w1_a, tensors_.w1_b, {});
    at::Tensor second = factor(tensors_.w2, tensors_.w2_a, tensors_.w2_b, tensors_.t2);
    if (layer_.shape.size() != 4) return at::kron(first, second.flatten(1));
    second = second.reshape({second.size(0), -1, layer_.shape[2], layer_.shape[3]});
    return at::kron(first.reshape({first.size(0), -1, 1, 1}), second).flatten(1);
}

STRATA_INLINE at::Tensor LayerChange::whole_delta(at::ScalarType type) const {
    if (tensors_.is_lokr()) return own_rows(kronecker(type).mul(scale_));
    const at::Tensor up_Or = read(tensors_.up, type).flatten(1);
    const at::Tensor down_rI = read(tensors_.down, type).flatten(1);
    if (!tensors_.middle) return own_rows(up_Or).mul(scale_).matmul(down_rI);
    return own_rows(detail::with_core(read(tensors_.middle, type), up_Or.t().mul(scale_), down_rI).flatten(1));
}

STRATA_INLINE at::Tensor LayerChange::delta(std::int64_t first, std::int64_t rows, at::ScalarType type) const {
    if (tensors_.is_lokr() || tensors_.middle || place_.halves_swapped) return whole_delta(type).narrow(0, first, rows);
    const std::int64_t rank = detail::shape_of(tensors_.down)[0];
    const at::Tensor up_nr = at::empty({rows, rank}, at::TensorOptions{}.dtype(type));
    weights::read_values(*tensors_.up, (place_.first_row + first) * rank, up_nr.view(-1));
    return up_nr.mul_(scale_).matmul(read(tensors_.down, type).flatten(1));
}

STRATA_INLINE at::Tensor LayerChange::merged(const at::Tensor& base_nI, std::int64_t first) const {
    const at::NoGradGuard no_grad;
    const at::ScalarType type = base_nI.scalar_type();
    const at::Tensor change_nI = delta(first, base_nI.size(0), type).to(base_nI.device());
    if (!tensors_.magnitude) return base_nI.add(change_nI, strength_);
    const at::Tensor sum_nI = base_nI.add(change_nI);
    const double least = std::numeric_limits<float>::epsilon();  // a row of zeros stays one
    const at::Tensor magnitude = read(tensors_.magnitude, type).view(-1).to(base_nI.device());
    at::Tensor merged_nI;
    if (detail::is_of_columns(tensors_, place_.rows)) {  // a norm an input, over outputs and kernel
        const at::Tensor by_input = sum_nI.view({base_nI.size(0), magnitude.numel(), -1});
        const at::Tensor norm_I = by_input.square().sum(std::vector<std::int64_t>{0, 2}).sqrt().clamp_min(least);
        merged_nI = by_input.mul(magnitude.div(norm_I).unsqueeze(1)).view(base_nI.sizes());
    } else {
        const at::Tensor norm_n1 = sum_nI.square().sum(std::vector<std::int64_t>{1}, true).sqrt().clamp_min(least);
        const at::Tensor own_n1 = own_rows(magnitude).narrow(0, first, base_nI.size(0)).unsqueeze(1);
        merged_nI = sum_nI.mul(own_n1.div(norm_n1));
    }
    return strength_ == 1 ? merged_nI : base_nI.lerp(merged_nI, strength_);
}

STRATA_INLINE std::int64_t LayerChange::bytes_beside(std::int64_t rows) const noexcept {
    const std::int64_t of_all = tensors_.is_lokr() || tensors_.middle || place_.halves_swapped ? place_.rows : rows;
    std::int64_t matrices = 0;
    for (const AdapterTensors::Tensor& tensor :
         {tensors_.down, tensors_.up, tensors_.middle, tensors_.w1, tensors_.w2, tensors_.w2_b, tensors_.magnitude})
        if (tensor) matrices += detail::numel_of(*tensor);
    const std::int64_t products =
        2 * of_all * layer_.columns() + (tensors_.magnitude ? 3 * rows * layer_.columns() : 0);
    return 4 * (matrices + products);
}

}  // namespace strata::adapters
