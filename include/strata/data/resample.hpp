#pragma once
// strata/data/resample.hpp - a picture of any size to the fixed size of its bucket.

#include <cstdint>
#include <span>
#include <vector>

#include <strata/data/picture.hpp>
#include <strata/optim/simd.hpp>

namespace strata::data {

/// Pixels as a model takes them: three planes, red first, values in [-1, 1].
struct PlanarImage {
    std::int64_t width = 0;
    std::int64_t height = 0;
    std::vector<float> values;  ///< 3 * height * width: plane, row, column
};

/// Resizes a picture until it covers width x height, and keeps the middle of it.
///
/// Alpha is laid on white first. One scale for both edges, max(width / picture.width, height / picture.height); the
/// filter is Lanczos with three lobes, widened when it shrinks, so that nothing aliases (as Pillow's LANCZOS, but in
/// float throughout); only what is kept is computed. Values outside of black .. white are cut off. The same bits on
/// every CPU.
///
///   width, height  >= 1; the result's size, in pixels
///   level          what the loops are compiled for; tests set it
///
/// Throws Errc::bad_picture for an empty picture. Cost: about 6 * scale multiply-adds a sample and pass. Memory beside
/// the result: 200 bytes a column of the picture, and about 35 KB * (1 + scale).
[[nodiscard]] PlanarImage cover_and_crop(const Picture& picture, std::int64_t width, std::int64_t height,
                                         optim::SimdLevel level = optim::simd_level());

/// The same into memory of the caller: 3 * height * width values.
void cover_and_crop_into(const Picture& picture, std::int64_t width, std::int64_t height, std::span<float> values,
                         optim::SimdLevel level = optim::simd_level());

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/resample.ipp>
#endif
