#pragma once
// strata/datasets/impl/bucket_table.ipp - filling buckets, and what becomes of those that are too small.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <strata/datasets/bucket_table.hpp>
#include <strata/datasets/impl/small_buckets.ipp>

namespace strata::datasets {

namespace detail {

/// Narrowest first; of equally narrow first shapes that with fewer others.
struct ShapesOrder {
    bool operator()(const std::vector<pictures::Shape>& a, const std::vector<pictures::Shape>& b) const noexcept {
        return std::lexicographical_compare(
            a.begin(), a.end(), b.begin(), b.end(), [](const pictures::Shape& x, const pictures::Shape& y) {
                return x.size == y.size ? x.weight < y.weight : pictures::is_narrower(x.size, y.size);
            });
    }
};

}  // namespace detail

STRATA_INLINE std::vector<Bucket> fill_buckets(std::size_t dataset, const config::ImageDataset& settings,
                                               const pictures::Framer& framer,
                                               const std::vector<pictures::PictureSize>& pictures) {
    std::map<std::vector<pictures::Shape>, std::vector<std::size_t>, detail::ShapesOrder> filled;
    for (std::size_t i = 0; i < pictures.size(); ++i) filled[framer.shapes_of(pictures[i])].push_back(i);
    std::vector<Bucket> buckets;
    for (auto& [shapes, samples] : filled)
        buckets.push_back({dataset, settings.id, shapes.front().size, shapes, std::move(samples), settings.repeats,
                           settings.repeats, 0, settings.train_batch_size, settings.small_buckets});
    return buckets;
}

STRATA_INLINE void merge_small_buckets(std::vector<Bucket>& buckets, const BatchShape& shape) {
    detail::merge_small(buckets, shape,
                        [](const Bucket& bucket) { return bucket.if_small == config::SmallBuckets::merge; });
}

STRATA_INLINE std::vector<std::size_t> buckets_to_drop(const std::vector<Bucket>& buckets, const BatchShape& shape) {
    std::vector<std::size_t> indices;
    for (std::size_t b = 0; b < buckets.size(); ++b)
        if (buckets[b].if_small == config::SmallBuckets::drop && is_small(buckets[b], shape)) indices.push_back(b);
    return indices;
}

STRATA_INLINE void require_effective_batch(std::vector<Bucket>& buckets, const BatchShape& shape,
                                           bool allow_oversubscription) {
    std::vector<std::size_t> small;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        Bucket& bucket = buckets[b];
        if (!is_small(bucket, shape)) continue;
        if (detail::is_repeated(bucket, allow_oversubscription) && bucket.repeats_asked == 0)
            bucket.repeats = detail::repeats_needed(bucket, shape);
        else
            small.push_back(b);
    }
    if (!small.empty()) throw detail::small_bucket_error(buckets, small, shape, allow_oversubscription);
}

}  // namespace strata::datasets
