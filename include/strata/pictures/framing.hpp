#pragma once
// strata/pictures/framing.hpp - Framer: a data set's settings, and what becomes of a picture of any size.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <strata/config/dataset.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/pictures/buckets.hpp>
#include <strata/pictures/frame.hpp>
#include <strata/pictures/simpletuner_sizes.hpp>

namespace strata::pictures {

/// What of the trainer's configuration the training sizes follow from.
struct BucketSettings {
    std::int64_t alignment = 64;  ///< both edges are multiples of it, in pixels
    config::BucketMode mode = config::BucketMode::nearest;
    std::int64_t rounding = 2;  ///< decimals of an aspect ratio in mode simpletuner
};

/// A training size, and how likely it is drawn where there are several.
struct Shape {
    PictureSize size;
    double weight = 1;
    friend bool operator==(const Shape&, const Shape&) = default;
};

/// Training sizes and crops of the pictures of one data set. All of it follows from the picture's size as it is meant
/// to be seen, the settings, and a random number where the settings say random; no other picture matters.
///
/// Training size, in mode nearest: of bucket_list() the nearest in log(width / height). With `crop` and `crop_aspect`
/// closest or random it is the bucket nearest to one of `crop_aspect_buckets`: of the ratio nearest to the
/// picture's, or of one that is drawn by its weight. With `max_upscale_threshold` t only buckets count whose
/// edges are at most 1 + t times the picture's; where none is left, the one that enlarges the least.
///
/// Training size, in mode simpletuner: simpletuner_size(), simpletuner_square(). closest is nearest by plain difference
/// there, and where t leaves none it is that of ratio 1.
///
/// Intermediary: the smallest size that covers the training size (nearest: centered(), of exactly the picture's ratio;
/// simpletuner: simpletuner_intermediary()). With `crop` and a picture above `maximum_image_size` it is the larger one
/// of that and `target_downsample_size`, so that the box shows a part of the picture only; simpletuner does so for
/// pictures of all sizes.
///
/// Box: with `crop_style` corner at (0, 0); random at whole pixels, evenly in all of the intermediary; otherwise, and
/// always without `crop`, in the middle (simpletuner: rounded down to whole pixels).
class Framer {
public:
    /// Throws Errc::bad_value in mode simpletuner with `resolution_type` pixel for a resolution that is no whole
    /// number.
    Framer(const config::ImageDataset& dataset, const BucketSettings& settings);

    /// The training sizes that a picture may have: one, or with crop_aspect random all that are drawn from, narrowest
    /// first; their weights sum to 1.
    [[nodiscard]] std::vector<Shape> shapes_of(const PictureSize& picture) const;

    /// The frame of a picture in a training size.
    ///
    ///   random  of this sample in this epoch; counts with crop_style random only
    [[nodiscard]] Frame frame(const PictureSize& picture, const PictureSize& target, std::uint64_t random = 0) const;

    /// Both: a training size of shapes_of(), drawn by `random`, and the frame.
    [[nodiscard]] Frame frame(const PictureSize& picture, std::uint64_t random = 0) const;

private:
    [[nodiscard]] std::size_t nearest(double log_ratio) const;
    [[nodiscard]] PictureSize size_for(double aspect, const PictureSize& picture) const;
    [[nodiscard]] std::vector<Shape> listed_shapes_of(const PictureSize& picture) const;
    [[nodiscard]] bool is_shrunk_first(const PictureSize& picture) const;

    config::ImageDataset dataset_;
    BucketSettings settings_;
    SimpletunerRule peer_;
    std::vector<PictureSize> sizes_;  // of mode nearest
    std::vector<double> log_ratios_;  // of sizes_, ascending
};

/// One of the sizes, by their weights.
[[nodiscard]] PictureSize drawn(const std::vector<Shape>& shapes, std::uint64_t random) noexcept;

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/framing.ipp>
#endif
