#pragma once
// strata/pictures/resample.hpp - a picture of any size to its training size.

#include <cstdint>
#include <span>
#include <vector>

#include <strata/core/simd.hpp>
#include <strata/pictures/frame.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// Pixels as a model takes them: three planes, red first, values in [-1, 1].
struct PlanarImage {
    std::int64_t width = 0;
    std::int64_t height = 0;
    std::vector<float> values;  ///< 3 * height * width: plane, row, column
};

/// Resizes a picture to the frame's intermediary size, and keeps the frame's box of it.
///
/// Alpha is laid on white first. The filter is Lanczos with three lobes, widened when it shrinks, so that nothing aliases
/// (as Pillow's LANCZOS, but in float throughout); only what is kept is computed. Values outside of black .. white are
/// cut off. The same bits on every CPU.
///
///   picture  may be smaller or larger than the one the frame was made for, as long as it shows the same
///   level    what the loops are compiled for; tests set it
///
/// Throws Errc::bad_picture for an empty picture. Cost: about 6 * scale multiply-adds a sample and pass. Memory beside
/// the result: 200 bytes a column of the picture, and about 35 KB * (1 + scale).
[[nodiscard]] PlanarImage resize_and_crop(const Picture& picture, const Frame& frame,
                                          core::SimdLevel level = core::simd_level());

/// The same into memory of the caller: 3 * height * width values of the frame's target.
void resize_and_crop_into(const Picture& picture, const Frame& frame, std::span<float> values,
                          core::SimdLevel level = core::simd_level());

/// resize_and_crop() to the middle of the picture, where it just covers width x height: centered().
///
///   width, height  >= 1; the result's size, in pixels
[[nodiscard]] PlanarImage cover_and_crop(const Picture& picture, std::int64_t width, std::int64_t height,
                                         core::SimdLevel level = core::simd_level());

/// The same into memory of the caller: 3 * height * width values.
void cover_and_crop_into(const Picture& picture, std::int64_t width, std::int64_t height, std::span<float> values,
                         core::SimdLevel level = core::simd_level());

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/resample.ipp>
#endif
