#pragma once
// strata/pictures/impl/framing.ipp - training size, intermediary size, box.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/core/random.hpp>
#include <strata/pictures/framing.hpp>
#include <strata/pictures/impl/buckets.ipp>

namespace strata::pictures {

namespace detail {

/// What a size is in the unit of a resolution: the shorter edge, megapixels, or the edge of a square of the same area.
inline double size_in_unit(const PictureSize& size, config::ResolutionType type) noexcept {
    const auto w = static_cast<double>(size.width);
    const auto h = static_cast<double>(size.height);
    switch (type) {
        case config::ResolutionType::pixel:
            return std::min(w, h);
        case config::ResolutionType::area:
            return w * h / 1e6;
        case config::ResolutionType::pixel_area:
            return std::sqrt(w * h);
    }
    return 0;
}

/// By how much the edges of a picture grow where it covers `target`.
inline double enlargement(const PictureSize& picture, const PictureSize& target) noexcept {
    return std::max(static_cast<double>(target.width) / static_cast<double>(picture.width),
                    static_cast<double>(target.height) / static_cast<double>(picture.height));
}

}  // namespace detail

STRATA_INLINE Framer::Framer(const config::ImageDataset& dataset, const BucketSettings& settings)
    : dataset_{dataset},
      settings_{settings},
      peer_{dataset.resolution, dataset.resolution_type, settings.alignment, settings.rounding} {
    if (settings.mode == config::BucketMode::simpletuner) {
        if (dataset.resolution_type == config::ResolutionType::pixel &&
            std::floor(dataset.resolution) != dataset.resolution)
            throw Error{Errc::bad_value,
                        "data set '" + dataset.id +
                            "': 'resolution' is no whole number, and bucket_mode simpletuner counts whole pixels",
                        "use a whole number, or bucket_mode default"};
        return;
    }
    const BucketRule rule = bucket_rule(dataset, settings.alignment);
    sizes_ = bucket_list(rule);
    for (const PictureSize& size : sizes_) log_ratios_.push_back(detail::log_ratio_of(size));
}

/// As nearest_bucket().
STRATA_INLINE std::size_t Framer::nearest(double log_ratio) const {
    const auto above = static_cast<std::size_t>(std::lower_bound(log_ratios_.begin(), log_ratios_.end(), log_ratio) -
                                                log_ratios_.begin());
    if (above == 0) return 0;
    if (above == log_ratios_.size()) return above - 1;
    const double up = std::abs(log_ratios_[above] - log_ratio);
    const double down = std::abs(log_ratios_[above - 1] - log_ratio);
    if (up != down) return up < down ? above : above - 1;
    return std::abs(log_ratios_[above]) < std::abs(log_ratios_[above - 1]) ? above : above - 1;
}

STRATA_INLINE PictureSize Framer::size_for(double aspect, const PictureSize& picture) const {
    if (settings_.mode == config::BucketMode::simpletuner) return simpletuner_size(peer_, aspect, picture).target;
    return sizes_[nearest(std::log(aspect))];
}

STRATA_INLINE std::vector<Shape> Framer::listed_shapes_of(const PictureSize& picture) const {
    struct Candidate {
        double aspect;
        Shape shape;
    };
    const bool is_peer = settings_.mode == config::BucketMode::simpletuner;
    const double most = 1 + dataset_.max_upscale_threshold.value_or(1e9);
    std::vector<Candidate> all;
    std::vector<Candidate> allowed;
    for (const config::CropAspectBucket& bucket : dataset_.crop_aspect_buckets) {
        if (dataset_.crop_aspect == config::CropAspect::random && bucket.weight == 0) continue;
        all.push_back({bucket.aspect, {size_for(bucket.aspect, picture), bucket.weight}});
        const PictureSize& size = all.back().shape.size;
        if (static_cast<double>(size.width) <= static_cast<double>(picture.width) * most &&
            static_cast<double>(size.height) <= static_cast<double>(picture.height) * most)
            allowed.push_back(all.back());
    }
    if (allowed.empty()) {
        if (is_peer) return {{size_for(1, picture), 1}};
        const auto least = std::min_element(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
            return detail::enlargement(picture, a.shape.size) < detail::enlargement(picture, b.shape.size);
        });
        return {{least->shape.size, 1}};
    }
    if (dataset_.crop_aspect == config::CropAspect::closest) {
        const double log_ratio = detail::log_ratio_of(picture);
        const double rounded = is_peer ? rounded_ratio(picture, settings_.rounding) : 0;
        const auto distance = [&](const Candidate& candidate) {
            const double log_aspect = std::log(candidate.aspect);
            return is_peer ? std::pair{std::abs(candidate.aspect - rounded), 0.0}
                           : std::pair{std::abs(log_aspect - log_ratio), std::abs(log_aspect)};
        };
        const auto closest =
            std::min_element(allowed.begin(), allowed.end(),
                             [&](const Candidate& a, const Candidate& b) { return distance(a) < distance(b); });
        return {{closest->shape.size, 1}};
    }
    std::vector<Shape> shapes;
    double sum = 0;
    for (const Candidate& candidate : allowed) sum += candidate.shape.weight;
    for (const Candidate& candidate : allowed) {
        const auto same = std::find_if(shapes.begin(), shapes.end(),
                                       [&](const Shape& shape) { return shape.size == candidate.shape.size; });
        if (same != shapes.end())
            same->weight += candidate.shape.weight / sum;
        else
            shapes.push_back({candidate.shape.size, candidate.shape.weight / sum});
    }
    std::sort(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) { return is_narrower(a.size, b.size); });
    return shapes;
}

STRATA_INLINE std::vector<Shape> Framer::shapes_of(const PictureSize& picture) const {
    const bool is_peer = settings_.mode == config::BucketMode::simpletuner;
    if (dataset_.crop) {
        if (dataset_.crop_aspect == config::CropAspect::closest || dataset_.crop_aspect == config::CropAspect::random)
            return listed_shapes_of(picture);
        if (is_peer && dataset_.crop_aspect == config::CropAspect::square) {
            const std::int64_t edge = simpletuner_square(peer_);
            return {{{edge, edge}, 1}};
        }
    }
    if (is_peer) return {{size_for(rounded_ratio(picture, settings_.rounding), picture), 1}};
    return {{sizes_[nearest(detail::log_ratio_of(picture))], 1}};
}

STRATA_INLINE bool Framer::is_shrunk_first(const PictureSize& picture) const {
    if (!dataset_.crop || dataset_.maximum_image_size <= 0) return false;
    return settings_.mode == config::BucketMode::simpletuner ||
           detail::size_in_unit(picture, dataset_.resolution_type) > dataset_.maximum_image_size;
}

STRATA_INLINE Frame Framer::frame(const PictureSize& picture, const PictureSize& target, std::uint64_t random) const {
    const bool is_peer = settings_.mode == config::BucketMode::simpletuner;
    Frame frame = centered(picture, target);
    if (is_peer) {
        PictureSize size = simpletuner_intermediary(peer_, picture, target);
        if (is_shrunk_first(picture)) {
            SimpletunerRule rule = peer_;
            rule.resolution = dataset_.target_downsample_size;
            const PictureSize there =
                simpletuner_size(rule, rounded_ratio(picture, settings_.rounding), picture).target;
            size = simpletuner_intermediary(rule, picture, there);
            if (size.width < target.width)
                size = {target.width, static_cast<std::int64_t>(
                                          static_cast<double>(size.height) *
                                          (static_cast<double>(target.width) / static_cast<double>(size.width)))};
            if (size.height < target.height)
                size = {
                    static_cast<std::int64_t>(static_cast<double>(size.width) *
                                              (static_cast<double>(target.height) / static_cast<double>(size.height))),
                    target.height};
            size = {std::max(size.width, target.width), std::max(size.height, target.height)};
        }
        frame.width = static_cast<double>(size.width);
        frame.height = static_cast<double>(size.height);
    } else if (is_shrunk_first(picture)) {
        double scale = dataset_.target_downsample_size / detail::size_in_unit(picture, dataset_.resolution_type);
        if (dataset_.resolution_type == config::ResolutionType::area) scale = std::sqrt(scale);
        if (scale > detail::enlargement(picture, target)) {
            frame.width = std::max(frame.width, static_cast<double>(picture.width) * scale);
            frame.height = std::max(frame.height, static_cast<double>(picture.height) * scale);
        }
    }
    const double right = frame.width - static_cast<double>(target.width);  // what is left over
    const double below = frame.height - static_cast<double>(target.height);
    switch (dataset_.crop ? dataset_.crop_style : config::CropStyle::center) {
        case config::CropStyle::center:
            frame.left = is_peer ? std::floor(right / 2) : right / 2;
            frame.top = is_peer ? std::floor(below / 2) : below / 2;
            break;
        case config::CropStyle::corner:
            frame.left = frame.top = 0;
            break;
        case config::CropStyle::random: {
            core::Random numbers{random};
            const auto within = [&](double rest) {
                return static_cast<double>(numbers.below(static_cast<std::uint64_t>(std::floor(rest)) + 1));
            };
            frame.left = within(right);
            frame.top = within(below);
            break;
        }
    }
    return frame;
}

STRATA_INLINE Frame Framer::frame(const PictureSize& picture, std::uint64_t random) const {
    return frame(picture, drawn(shapes_of(picture), core::combine({random, 1})), random);
}

STRATA_INLINE PictureSize drawn(const std::vector<Shape>& shapes, std::uint64_t random) noexcept {
    double left = core::unit_interval(random);
    for (const Shape& shape : shapes) {
        if (left < shape.weight) return shape.size;
        left -= shape.weight;
    }
    return shapes.back().size;  // the weights' sum is rounded
}

}  // namespace strata::pictures
