#pragma once
// strata/pictures/buckets.hpp - which training size a picture gets: a pure function of its size and the settings.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <strata/config/dataset_list.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// The settings that buckets follow from.
struct BucketRule {
    double resolution = 1024;
    config::ResolutionType resolution_type = config::ResolutionType::pixel_area;
    std::int64_t alignment = 64;  ///< both edges are multiples of it, in pixels
    double minimum_aspect_ratio = 0.25;
    double maximum_aspect_ratio = 4;
    bool square_only = false;  ///< `crop` with `crop_aspect` square
};

[[nodiscard]] BucketRule bucket_rule(const config::ImageDataset& dataset, std::int64_t alignment);

/// All training sizes, from the narrowest to the widest. It does not depend on any picture.
///
/// Edge E: with pixel the resolution, with area sqrt(resolution * 1e6), with pixel_area the resolution; multiples of
/// the alignment a are rounded half up and at least a. The square of E, and unless square_only
///   * pixel: short edge E, long edge E + k a;
///   * area, pixel_area: for each long edge L = k a > E the short edge E * E / L, if the area is 4/5 to 5/4 of E * E;
/// each with its mirror image, and only within the aspect ratios; where none is within, the one nearest in log(width /
/// height) to the middle of them. Symmetric: (w, h) is in it when (h, w) is and the limits are reciprocal. With
/// square_only the square whatever the limits are: they are about pictures then.
[[nodiscard]] std::vector<PictureSize> bucket_list(const BucketRule& rule);

/// The order of bucket_list(): by width / height, then by width.
[[nodiscard]] bool is_narrower(const PictureSize& a, const PictureSize& b) noexcept;

/// The index of the bucket nearest in log(width / height); of two equally near ones that nearer to a square.
[[nodiscard]] std::size_t nearest_bucket(const std::vector<PictureSize>& buckets, const PictureSize& picture) noexcept;

/// True when the picture has at least `minimum_image_size` in the unit of `resolution_type`: with pixel the
/// shorter edge counts, with area and pixel_area the area.
[[nodiscard]] bool is_large_enough(const PictureSize& picture, const config::ImageDataset& dataset) noexcept;

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/buckets.ipp>
#endif
