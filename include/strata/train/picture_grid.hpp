#pragma once
// strata/train/picture_grid.hpp - pictures side by side in one PNG.

#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>

namespace strata::train {

/// Pictures of one size in rows of `columns`, `gap` white pixels between them and around them.
///
///   pictures  each (3, H, W), [-1, 1], red first; values outside are clamped
///   returns   a PNG file, 8-bit RGB; cells without a picture are white
[[nodiscard]] std::vector<std::byte> encode_picture_grid(std::span<const at::Tensor> pictures, int columns,
                                                         int gap = 4);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/picture_grid.ipp>
#endif
