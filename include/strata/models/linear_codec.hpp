#pragma once
// strata/models/linear_codec.hpp - LinearCodec: a fixed linear autoencoder that needs no weights.

#include <cstdint>
#include <string>

#include <torch/torch.h>

#include <strata/core/inline.hpp>

namespace strata::models {

/// An Autoencoder for machines without pretrained weights: 16 coefficients of a lapped transform for each 8 x 8 pixels.
///
/// Colour goes through an orthonormal luma/chroma basis, each of the three planes through separable filters of 16 pixels that
/// advance by 8, so that neighbours overlap and no edges of blocks are seen (lapped transforms: Malvar & Staelin 1989; with
/// synthesis filters of their own, biorthogonal ones: Malvar 1998); kept are the 10 lowest luma and the 3 lowest coefficients of each
/// chroma plane. At its borders a picture goes on as its mirror image. Latents are (coefficient - mean) * scale with one
/// fixed pair per channel. Flat colours survive exactly; docs/models.md states the PSNR. Stateless, thread-safe.
class LinearCodec {
public:
    static constexpr std::int64_t channels = 16;
    static constexpr std::int64_t stride = 8;

    /// Part of the identity of cached latents; changes with any change of the numbers.
    [[nodiscard]] std::string id() const { return "linear-codec-lapped-8x16-v2"; }
    [[nodiscard]] std::int64_t latent_channels() const noexcept { return channels; }
    [[nodiscard]] std::int64_t pixels_per_latent() const noexcept { return stride; }

    /// (3, H, W), or (B, 3, H, W), in [-1, 1], red first, H and W multiples of 8 -> (16, H/8, W/8), or (B, 16, H/8, W/8), fp32
    /// on the CPU.
    [[nodiscard]] at::Tensor encode(const at::Tensor& images) const;

    /// (16, h, w) fp32 -> (3, 8h, 8w) fp32; not clamped.
    [[nodiscard]] at::Tensor decode(const at::Tensor& latents_Chw) const;
};

}  // namespace strata::models

#ifndef STRATA_COMPILED
#include <strata/models/impl/linear_codec.ipp>
#endif
