#pragma once
// strata/models/detail/picture_size.hpp - the one check of what an autoencoder is given.

#include <cstdint>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <strata/core/error.hpp>

namespace strata::models::detail {

/// Throws Errc::bad_value unless `images` is (B, 3, H, W) with edges that are multiples of f.
inline void check_picture_size(std::string_view model, const at::Tensor& images, std::int64_t f) {
    if (images.dim() == 4 && images.size(1) == 3 && images.size(2) % f == 0 && images.size(3) % f == 0 &&
        images.numel() > 0)
        return;
    std::string shape;
    for (const std::int64_t n : images.sizes()) shape += (shape.empty() ? "" : " x ") + std::to_string(n);
    throw Error{Errc::bad_value, std::string{model} + " got pictures of " + shape,
                "give a batch of pictures of 3 channels whose edges are multiples of " + std::to_string(f)};
}

}  // namespace strata::models::detail
