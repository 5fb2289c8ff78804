#pragma once
// strata/zero/impl/packed_unit.ipp - parameters between bytes and the format that a model computes with.

#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>

#include <strata/core/error.hpp>
#include <strata/zero/parts/packed_unit.hpp>

namespace strata::zero {

STRATA_INLINE void PackedUnit::add(std::string name, const at::Tensor& parameter, bool excepted) {
    Piece piece{.name = std::move(name),
                .shape = {},
                .quantised = !excepted && parameter.dim() >= 2 && parameter.numel() > 0,
                .numel = parameter.numel(),
                .at = numel_,
                .begin = (bytes_ + alignment - 1) / alignment * alignment,
                .bytes = 0};
    if (piece.quantised) {
        piece.shape = {parameter.size(0), parameter.numel() / parameter.size(0)};
        piece.bytes = format_->bytes(piece.shape);
    } else {
        piece.bytes = piece.numel * static_cast<std::int64_t>(c10::elementSize(dtype_));
    }
    numel_ += piece.numel;
    bytes_ = piece.begin + piece.bytes;
    pieces_.push_back(std::move(piece));
}

STRATA_INLINE void PackedUnit::pack(const Piece& piece, const at::Tensor& values, std::byte* to) const {
    if (!piece.quantised) {
        std::memcpy(to, values.data_ptr(), static_cast<std::size_t>(piece.bytes));
        return;
    }
    if (format_->quantise(static_cast<const float*>(values.data_ptr()), piece.shape, to)) return;
    throw Error{Errc::bad_parameter,
                "the frozen parameter " + piece.name + " has values that are infinite or NaN, and " + format_->name +
                    " has none for them",
                "look at the file or the code that its values come from, or drop FrozenWeights"};
}

STRATA_INLINE void PackedUnit::unpack_on_host(const Piece& piece, const std::byte* packed, void* values) const {
    if (!piece.quantised) {
        std::memcpy(values, packed, static_cast<std::size_t>(piece.bytes));
    } else if (dtype_ == at::kBFloat16) {
        format_->as_bf16(packed, piece.shape, static_cast<bf16*>(values));
    } else if (dtype_ == at::kHalf) {
        format_->as_fp16(packed, piece.shape, static_cast<fp16*>(values));
    } else {
        format_->as_fp32(packed, piece.shape, static_cast<float*>(values));
    }
}

STRATA_INLINE void PackedUnit::unpack(const Piece& piece, const at::Tensor& bytes, const at::Tensor& all_N) const {
    if (piece.numel == 0) return;
    const at::Tensor values = all_N.narrow(0, piece.at, piece.numel);
    if (all_N.is_cpu()) {
        unpack_on_host(piece, static_cast<const std::byte*>(bytes.data_ptr()), values.data_ptr());
    } else if (!piece.quantised) {
        values.view(at::kByte).copy_(bytes);
    } else if (format_->on_device != nullptr) {
        format_->on_device(bytes, piece.shape, values);
    } else {
        const at::Tensor there = bytes.cpu();
        const at::Tensor here = at::empty({piece.numel}, at::TensorOptions{}.dtype(dtype_));
        unpack_on_host(piece, static_cast<const std::byte*>(there.data_ptr()), here.data_ptr());
        values.copy_(here);
    }
}

STRATA_INLINE void PackedUnit::unpack(const at::Tensor& packed_P, const at::Tensor& all_N) const {
    for (const Piece& piece : pieces_) unpack(piece, packed_P.narrow(0, piece.begin, piece.bytes), all_N);
}

}  // namespace strata::zero
