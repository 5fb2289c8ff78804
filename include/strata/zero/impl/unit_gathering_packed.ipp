#pragma once
// strata/zero/impl/unit_gathering_packed.ipp - units whose shards are bytes: dequantised when they are gathered, quantised when written.

#include <algorithm>
#include <utility>

#include <strata/zero/layout.hpp>
#include <strata/zero/parts/unit_gathering.hpp>

namespace strata::zero {

/// For all ranks' shards of a flat.
STRATA_INLINE at::Tensor UnitGathering::room_for(const Flat& flat) const {
    if (!flat.packed)
        return pool_.empty(flat.all_B.numel(), flat.all_B.scalar_type(), MemoryKind::gathered, Place::device);
    const std::int64_t share = share_numel(flat.packed->bytes(), exchange_.world());
    return pool_.empty(share * exchange_.world(), at::kByte, MemoryKind::gathered, Place::device);
}

/// Gathers a flat that has its memory. Collective; on the channel's thread.
STRATA_INLINE void UnitGathering::fill(const Flat& flat, const at::Tensor& share) {
    if (!flat.packed) return exchange_.all_gather(share, flat.all_B);
    if (exchange_.alone() && share.device() == flat.all_B.device()) return flat.packed->unpack(share, flat.all_B);
    const at::Tensor bytes_P = room_for(flat);
    exchange_.all_gather(share, bytes_P);
    flat.packed->unpack(bytes_P, flat.all_B);
}

/// Where a piece and this rank's share of the bytes meet, they become those of what the piece holds; other bytes stay as they are. The piece
/// then holds what its bytes stand for.
STRATA_INLINE void UnitGathering::repack(const Flat& flat, const std::function<bool(const at::Tensor&)>& written) {
    const PackedUnit& packed = *flat.packed;
    const std::int64_t share = share_numel(packed.bytes(), exchange_.world());
    const std::int64_t begin = share * exchange_.rank();
    for (std::size_t i = 0; i < flat.parameters.size(); ++i) {
        const PackedUnit::Piece& piece = packed.pieces()[i];
        if (piece.numel == 0 || !written(flat.parameters[i])) continue;
        const at::Tensor values =
            flat.all_B.narrow(0, piece.at, piece.numel).to(at::kCPU, packed.type_of(piece)).contiguous();
        const at::Tensor bytes = pool_.empty(piece.bytes, at::kByte, MemoryKind::buffers, Place::host);
        packed.pack(piece, values, static_cast<std::byte*>(bytes.data_ptr()));
        packed.unpack(piece, bytes.to(flat.all_B.device()), flat.all_B);
        const std::int64_t from = std::max(begin, piece.begin);
        const std::int64_t to = std::min(begin + share, piece.begin + piece.bytes);
        if (from >= to) continue;
        shards_.open(flat.shard, offload::Access::update)
            .narrow(0, from - begin, to - from)
            .copy_(bytes.narrow(0, from - piece.begin, to - from));
        shards_.close(flat.shard, offload::Access::update);
    }
}

STRATA_INLINE std::optional<PackedPiece> UnitGathering::bytes_of(const at::Tensor& parameter) {
    if (abandoned_) start_anew();
    for (const Unit& unit : units_) {
        for (const Flat& flat : unit.flats) {
            if (!flat.packed) continue;
            for (std::size_t i = 0; i < flat.parameters.size(); ++i) {
                if (!flat.parameters[i].is_same(parameter)) continue;
                if (bytes_are_of_ != flat.packed.get()) {
                    bytes_are_of_ = nullptr;
                    bytes_P_.reset();
                    bytes_P_ = room_for(flat);
                    exchange_
                        .post("units",
                              [this, &flat] {
                                  const auto [share, failure] = opened(flat);
                                  if (failure) std::rethrow_exception(failure);
                                  exchange_.all_gather(share, bytes_P_);
                                  shards_.close(flat.shard, offload::Access::read);
                              })
                        .wait();
                    bytes_are_of_ = flat.packed.get();
                }
                const PackedUnit::Piece& piece = flat.packed->pieces()[i];
                return PackedPiece{bytes_P_.narrow(0, piece.begin, piece.bytes), &flat.packed->format(),
                                   flat.packed->dtype(), piece.quantised};
            }
        }
    }
    return std::nullopt;
}

}  // namespace strata::zero
