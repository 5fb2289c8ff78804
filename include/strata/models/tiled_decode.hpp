#pragma once
// strata/models/tiled_decode.hpp - tiled_decode: latents decoded in overlapping tiles that are blended, in bounded memory.

#include <cstdint>

#include <ATen/core/Tensor.h>

#include <strata/core/function_ref.hpp>
#include <strata/core/inline.hpp>

namespace strata::models {

/// Tiles of a decoder. What overlaps is computed twice and blended, so that no edge is seen.
struct TileOptions {
    std::int64_t edge = 64;     ///< of a tile, in latents
    std::int64_t overlap = 16;  ///< of neighbours, in latents; at most half an edge
};

/// decode(tile) for tiles of (B, C, h, w), put together.
///
///   decode  (B, C, a, b) -> (B, 3, f a, f b)
///   f       pixels_per_latent
/// Tiles are spread evenly, and the last row and column ends where the latents do. Across an overlap the share of one
/// tile falls linearly while that of its neighbour rises, so that shares add up to 1. Latents that fit into one tile
/// are one call. Records no gradient. Throws Errc::bad_value for an overlap that is negative or more than half an edge.
[[nodiscard]] at::Tensor tiled_decode(const at::Tensor& latents_BChw, std::int64_t pixels_per_latent,
                                      const TileOptions& tiles,
                                      core::FunctionRef<at::Tensor(const at::Tensor&)> decode);

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/tiled_decode.ipp>
#endif
