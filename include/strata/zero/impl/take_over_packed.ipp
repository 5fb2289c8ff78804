#pragma once
// strata/zero/impl/take_over_packed.ipp - frozen parameters of a unit become bytes: rank 0 quantises them, one after the other.

#include <cstring>

#include <strata/zero/layout.hpp>
#include <strata/zero/parts/take_over.hpp>

namespace strata::zero {

/// A frozen parameter's values on the CPU, contiguous. Local; rank 0.
STRATA_INLINE at::Tensor TakeOver::values_of(const FrozenUnit& frozen, std::size_t parameter, at::ScalarType dtype) {
    const at::Tensor& tensor = frozen.tensors[parameter];
    const at::Tensor values = pool_.empty(tensor.numel(), dtype, MemoryKind::buffers, Place::host);
    if (DeferredUnit* const source = frozen.link ? frozen.link->deferred.get() : nullptr)
        source->values->read(source->find(tensor).value(), 0, values);
    else
        values.view(tensor.sizes()).copy_(tensor.detach());
    return values;
}

/// Local; rank 0. What it throws is kept for end_values(): the other ranks wait for the bytes.
///
///   is_there  by parameter: its bytes are in packed_P already
///   packed_P  on the CPU
STRATA_INLINE void TakeOver::pack_missing(const FrozenUnit& frozen, const std::vector<char>& is_there,
                                          const at::Tensor& packed_P) {
    try {
        const PackedUnit& packed = *frozen.packed;
        for (std::size_t i = 0; i < packed.pieces().size(); ++i) {
            const PackedUnit::Piece& piece = packed.pieces()[i];
            if (piece.numel == 0 || is_there[i] != 0) continue;
            packed.pack(piece, values_of(frozen, i, packed.type_of(piece)),
                        static_cast<std::byte*>(packed_P.data_ptr()) + piece.begin);
        }
    } catch (...) {
        if (!failure_) failure_ = std::current_exception();
    }
}

STRATA_INLINE void TakeOver::take_packed_unit(std::size_t unit) {
    const FrozenUnit& frozen = frozen_units_[unit];
    const PackedUnit& packed = *frozen.packed;
    const std::int64_t share = share_numel(packed.bytes(), buckets_.world());
    const at::Tensor packed_P = pool_.zeros(share * buckets_.world(), at::kByte, MemoryKind::gathered, Place::device);
    // What another engine of the model has as the same bytes is not dequantised on its way: it would drift.
    std::vector<char> is_there(frozen.tensors.size());
    bool all_there = true;
    for (std::size_t i = 0; i < frozen.tensors.size(); ++i) {
        const PackedUnit::Piece& piece = packed.pieces()[i];
        if (piece.numel == 0) continue;
        const auto bytes = options_.bytes_of ? options_.bytes_of(frozen.tensors[i]) : std::nullopt;
        is_there[i] = bytes && bytes->quantised == piece.quantised && bytes->dtype == packed.dtype() &&
                              bytes->format == &packed.format() && bytes->bytes.numel() == piece.bytes
                          ? 1
                          : 0;
        if (is_there[i] != 0) packed_P.narrow(0, piece.begin, piece.bytes).copy_(bytes->bytes);
        all_there = all_there && is_there[i] != 0;
    }
    if (!all_there) {
        if (options_.gather) options_.gather(frozen.tensors.front());
        if (exchange_.rank() == 0) {
            const at::Tensor on_host = packed_P.is_cpu() ? packed_P : packed_P.cpu();
            pack_missing(frozen, is_there, on_host);
            if (!packed_P.is_cpu()) packed_P.copy_(on_host);
        }
        exchange_.broadcast(packed_P);
    }
    DeferredUnit* const source = frozen.link ? frozen.link->deferred.get() : nullptr;
    if (source != nullptr) source->values->let_go();
    const at::Tensor all_N = without_memory(packed.numel(), packed.dtype());
    std::int64_t at = 0;
    for (at::Tensor tensor : frozen.tensors) {
        if (source != nullptr) detail::forbid_use(tensor, false);
        tensor.set_data(all_N.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
    }
    const std::size_t shard = buckets_.shard_numels().size() + unit;
    shards_.fill(shard, packed_P.narrow(0, share * buckets_.rank(), share));
    detail::drop_memory(all_N);
    frozen_flats_.push_back({all_N, shard, frozen.tensors, true, frozen.packed});
}

}  // namespace strata::zero
