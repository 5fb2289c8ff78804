#pragma once
// strata/train/picture_grid.hpp - pictures side by side in one PNG.

#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <strata/core/inline.hpp>

namespace strata::train {

/// Pictures in rows of `columns`, `gap` white pixels between them and around them. Columns are as wide as their widest
/// picture, rows as high as their highest; a picture stands at the top left of its cell.
///
///   pictures  each (3, H, W), [-1, 1], red first; values outside are clamped
///   returns   a PNG file, 8-bit RGB; cells without a picture are white
/// Throws Errc::bad_argument for no picture, no column, and a tensor of another shape.
[[nodiscard]] std::vector<std::byte> encode_picture_grid(std::span<const at::Tensor> pictures, int columns,
                                                         int gap = 4);

}  // namespace strata::train

#ifndef STRATA_COMPILED
#include <strata/train/impl/picture_grid.ipp>
#endif
