#pragma once
// strata/pictures/simpletuner_sizes.hpp - the sizes that SimpleTuner gives pictures, for `bucket_mode` simpletuner.

#include <cstdint>

#include <strata/config/dataset.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::pictures {

/// What the sizes follow from; the names are those of the configuration.
struct SimpletunerRule {
    double resolution = 1024;
    config::ResolutionType resolution_type = config::ResolutionType::pixel_area;
    std::int64_t alignment = 64;
    std::int64_t rounding = 2;  ///< decimals of an aspect ratio, 1 to 9
};

/// A training size, and the aspect ratio it is filed under there.
struct SimpletunerSize {
    PictureSize target;
    double key = 1;  ///< of the target, rounded
    friend bool operator==(const SimpletunerSize&, const SimpletunerSize&) = default;
};

/// width / height, rounded to so many decimals, halves of the exact binary value to the even digit as Python's round;
/// never below the smallest such number (there 0, and a division by zero).
[[nodiscard]] double rounded_ratio(const PictureSize& size, std::int64_t rounding);

/// The training size for an aspect ratio, with R(v) = max(round(v / alignment) * alignment, alignment), halves to even,
/// and int() cutting decimals off.
///
/// `area` of M megapixels, and `pixel_area` as M = resolution^2 / 10^6: with edge = R(int(sqrt(M * 10^6))) it is
/// R(edge * sqrt(ratio)) x R(edge / sqrt(ratio)). Where ratios have different sizes and one key, which happens below
/// 0.25, the first picture that is met decides there for all others; here each picture has the size of its own
/// ratio, which is what it has there as the first.
///
/// `pixel`: the shorter edge of the picture is R(resolution), the other one R(int(resolution / ratio or * ratio)).
///
///   ratio    rounded_ratio() of the picture, or one of `crop_aspect_buckets`
///   picture  decides with `pixel` which edge the resolution is for
[[nodiscard]] SimpletunerSize simpletuner_size(const SimpletunerRule& rule, double ratio, const PictureSize& picture);

/// The edge of the training size with `crop` and `crop_aspect` square: with `area` 512, 768, 1024, 1536, 2048 within
/// 0.05 of 0.25, 0.5, 1, 2, 4 megapixels, and otherwise R(sqrt(M * 10^6)); with `pixel` R(resolution).
[[nodiscard]] std::int64_t simpletuner_square(const SimpletunerRule& rule);

/// What a picture is resized to before `target` is cut out: whole pixels, at least `target` in both edges, and nearly
/// the picture's own ratio.
[[nodiscard]] PictureSize simpletuner_intermediary(const SimpletunerRule& rule, const PictureSize& picture,
                                                   const PictureSize& target);

}  // namespace strata::pictures

#ifndef STRATA_COMPILED
#include <strata/pictures/impl/simpletuner_sizes.ipp>
#endif
