#pragma once
// strata/models/packing.hpp - latents as tokens: each 2x2 patch of all channels becomes one token.

#include <cstdint>

#include <torch/torch.h>

namespace strata::models {

/// (B, C, H, W) -> (B, H/2 * W/2, 4C), H and W even; within a token the order is (channel, dy, dx), as in Flux.
inline at::Tensor pack_2x2(const at::Tensor& latents_BCHW) {
    const at::Tensor& x = latents_BCHW;
    return x.reshape({x.size(0), x.size(1), x.size(2) / 2, 2, x.size(3) / 2, 2})
        .permute({0, 2, 4, 1, 3, 5})
        .reshape({x.size(0), x.size(2) / 2 * (x.size(3) / 2), x.size(1) * 4});
}

/// The inverse of pack_2x2 for latents of H x W.
inline at::Tensor unpack_2x2(const at::Tensor& tokens_BLP, std::int64_t H, std::int64_t W) {
    const at::Tensor& x = tokens_BLP;
    const std::int64_t C = x.size(2) / 4;
    return x.reshape({x.size(0), H / 2, W / 2, C, 2, 2}).permute({0, 3, 1, 4, 2, 5}).reshape({x.size(0), C, H, W});
}

}  // namespace strata::models
