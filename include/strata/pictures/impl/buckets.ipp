#pragma once
// strata/pictures/impl/buckets.ipp - the list of training sizes.

#include <algorithm>
#include <cmath>

#include <strata/pictures/buckets.hpp>

namespace strata::pictures {

namespace detail {

/// The multiple of `alignment` nearest to `edge`, at least one of it.
inline std::int64_t aligned(double edge, std::int64_t alignment) noexcept {
    const auto steps = static_cast<std::int64_t>(std::floor(edge / static_cast<double>(alignment) + 0.5));
    return std::max<std::int64_t>(steps, 1) * alignment;
}

/// Pixels of the edge of the square training size, before alignment.
inline double edge_of(double resolution, config::ResolutionType type) noexcept {
    return type == config::ResolutionType::area ? std::sqrt(resolution * 1e6) : resolution;
}

inline double ratio_of(const PictureSize& size) noexcept {
    return static_cast<double>(size.width) / static_cast<double>(size.height);
}

/// Exactly antisymmetric: the mirrored size has the negative value.
inline double log_ratio_of(const PictureSize& size) noexcept {
    return std::log(static_cast<double>(size.width)) - std::log(static_cast<double>(size.height));
}

}  // namespace detail

STRATA_INLINE BucketRule bucket_rule(const config::ImageDataset& dataset, std::int64_t alignment) {
    return {dataset.resolution,
            dataset.resolution_type,
            alignment,
            dataset.minimum_aspect_ratio,
            dataset.maximum_aspect_ratio,
            dataset.crop && dataset.crop_aspect == config::CropAspect::square};
}

STRATA_INLINE std::vector<PictureSize> bucket_list(const BucketRule& rule) {
    const double edge = detail::edge_of(rule.resolution, rule.resolution_type);
    const std::int64_t square = detail::aligned(edge, rule.alignment);
    if (rule.square_only) return {{square, square}};
    const double widest = std::max(rule.maximum_aspect_ratio, 1 / rule.minimum_aspect_ratio);
    const double middle = std::log(rule.minimum_aspect_ratio * rule.maximum_aspect_ratio) / 2;
    std::vector<PictureSize> sizes;
    PictureSize nearest{square, square};  // to the middle of the limits
    const auto add = [&](const PictureSize& size) {
        const double ratio = detail::ratio_of(size);
        if (ratio >= rule.minimum_aspect_ratio && ratio <= rule.maximum_aspect_ratio) sizes.push_back(size);
        if (std::abs(std::log(ratio) - middle) < std::abs(detail::log_ratio_of(nearest) - middle)) nearest = size;
    };
    add(nearest);
    for (std::int64_t longer = square + rule.alignment;; longer += rule.alignment) {
        std::int64_t shorter = square;
        if (rule.resolution_type != config::ResolutionType::pixel) {
            shorter = detail::aligned(edge * edge / static_cast<double>(longer), rule.alignment);
            const double share = static_cast<double>(longer) * static_cast<double>(shorter) / (edge * edge);
            // The short edge ends at one step of the alignment; from there on the area only grows.
            if (shorter == rule.alignment && share > 1.25) break;
            if (share < 0.8 || share > 1.25 || shorter >= longer) continue;
        }
        const bool is_last = static_cast<double>(longer) / static_cast<double>(shorter) > widest;
        add({longer, shorter});  // the last may be nearest to narrow limits, from outside
        add({shorter, longer});
        if (is_last) break;
    }
    if (sizes.empty()) sizes.push_back(nearest);
    std::sort(sizes.begin(), sizes.end(), is_narrower);
    return sizes;
}

STRATA_INLINE bool is_narrower(const PictureSize& a, const PictureSize& b) noexcept {
    const std::int64_t left = a.width * b.height;
    const std::int64_t right = b.width * a.height;
    return left != right ? left < right : a.width < b.width;
}

STRATA_INLINE std::size_t nearest_bucket(const std::vector<PictureSize>& buckets, const PictureSize& picture) noexcept {
    const double wanted = detail::log_ratio_of(picture);
    std::size_t nearest = 0;
    for (std::size_t i = 1; i < buckets.size(); ++i) {
        const double here = detail::log_ratio_of(buckets[i]);
        const double best = detail::log_ratio_of(buckets[nearest]);
        const double distance = std::abs(here - wanted);
        const double least = std::abs(best - wanted);
        if (distance < least || (distance == least && std::abs(here) < std::abs(best))) nearest = i;
    }
    return nearest;
}

STRATA_INLINE bool is_large_enough(const PictureSize& picture, const config::ImageDataset& dataset) noexcept {
    const double least = dataset.minimum_image_size;
    const double area = static_cast<double>(picture.width) * static_cast<double>(picture.height);
    switch (dataset.resolution_type) {
        case config::ResolutionType::pixel:
            return static_cast<double>(std::min(picture.width, picture.height)) >= least;
        case config::ResolutionType::area:
            return area >= least * 1e6;
        case config::ResolutionType::pixel_area:
            return area >= least * least;
    }
    return true;
}

}  // namespace strata::pictures
