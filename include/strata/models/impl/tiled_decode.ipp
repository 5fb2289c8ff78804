#pragma once
// strata/models/impl/tiled_decode.ipp - where tiles lie, and how much of each a pixel has.

#include <algorithm>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <strata/core/error.hpp>
#include <strata/models/tiled_decode.hpp>

namespace strata::models {

namespace detail {

/// Tiles along one edge of the picture.
struct TileRow {
    std::vector<std::int64_t> begins;  ///< in latents
    std::int64_t edge = 0;             ///< of each, in latents
    std::vector<at::Tensor> shares;    ///< of each tile in its pixels, fp32; those of a pixel add up to 1
};

/// `length` latents in tiles as evenly as whole latents allow.
inline TileRow tile_row(std::int64_t length, std::int64_t f, const TileOptions& tiles, const at::TensorOptions& fp32) {
    TileRow row;
    row.edge = std::min(tiles.edge, length);
    const std::int64_t stride = tiles.edge - tiles.overlap;
    const std::int64_t count = std::max<std::int64_t>(1, (length - tiles.overlap + stride - 1) / stride);
    for (std::int64_t i = 0; i < count; ++i)
        row.begins.push_back(count == 1 ? 0 : (length - row.edge) * i / (count - 1));
    // A ramp over what two neighbours have in common; where three meet, their sum is not 1 and divides them.
    at::Tensor sum = at::zeros({length * f}, fp32);
    for (std::size_t i = 0; i < row.begins.size(); ++i) {
        at::Tensor share = at::ones({row.edge * f}, fp32);
        const auto ramp = [&](std::size_t left) {
            const std::int64_t common = (row.begins[left] + row.edge - row.begins[left + 1]) * f;
            return (at::arange(common, fp32) + 0.5) / common;
        };
        if (i > 0) {
            const at::Tensor rising = ramp(i - 1);
            share.narrow(0, 0, rising.size(0)).mul_(rising);
        }
        if (i + 1 < row.begins.size()) {
            const at::Tensor rising = ramp(i);
            share.narrow(0, row.edge * f - rising.size(0), rising.size(0)).mul_(rising.flip(0));
        }
        sum.narrow(0, row.begins[i] * f, row.edge * f).add_(share);
        row.shares.push_back(share);
    }
    for (std::size_t i = 0; i < row.shares.size(); ++i)
        row.shares[i].div_(sum.narrow(0, row.begins[i] * f, row.edge * f));
    return row;
}

}  // namespace detail

STRATA_INLINE at::Tensor tiled_decode(const at::Tensor& latents_BChw, std::int64_t f, const TileOptions& tiles,
                                      core::FunctionRef<at::Tensor(const at::Tensor&)> decode) {
    if (tiles.overlap < 0 || tiles.edge < 1 || 2 * tiles.overlap > tiles.edge)
        throw Error{
            Errc::bad_value,
            "tiles of " + std::to_string(tiles.edge) + " latents with " + std::to_string(tiles.overlap) + " in common",
            "give an overlap from 0 to half an edge"};
    const torch::NoGradGuard no_gradient;
    const std::int64_t h = latents_BChw.size(2), w = latents_BChw.size(3);
    if (h <= tiles.edge && w <= tiles.edge) return decode(latents_BChw);
    const at::TensorOptions fp32 = latents_BChw.options().dtype(at::kFloat);
    const detail::TileRow rows = detail::tile_row(h, f, tiles, fp32), columns = detail::tile_row(w, f, tiles, fp32);
    at::Tensor picture = at::zeros({latents_BChw.size(0), 3, h * f, w * f}, fp32);
    for (std::size_t i = 0; i < rows.begins.size(); ++i)
        for (std::size_t j = 0; j < columns.begins.size(); ++j) {
            const at::Tensor tile = decode(latents_BChw.narrow(2, rows.begins[i], rows.edge)
                                               .narrow(3, columns.begins[j], columns.edge)
                                               .contiguous());
            picture.narrow(2, rows.begins[i] * f, rows.edge * f)
                .narrow(3, columns.begins[j] * f, columns.edge * f)
                .addcmul_(tile.to(at::kFloat), rows.shares[i].unsqueeze(1) * columns.shares[j]);
        }
    return picture.to(latents_BChw.scalar_type());
}

}  // namespace strata::models
