#pragma once
// strata/datasets/bucket_table.hpp - samples sorted into buckets, and the check that every bucket holds a batch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <strata/config/dataset.hpp>
#include <strata/pictures/framing.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::datasets {

/// A bucket of one data set with the samples in it. With `crop_aspect` random all pictures that are drawn from the same
/// training sizes are one bucket, and each of its batches draws one of them.
struct Bucket {
    std::size_t dataset = 0;  ///< index in the list of data sets
    std::string dataset_id;
    pictures::PictureSize size;                    ///< the training size; of several the narrowest
    std::vector<pictures::Shape> shapes;           ///< all of them; at least one
    std::vector<std::size_t> samples;              ///< indices of the data set's samples, ascending
    std::int64_t repeats = 0;                      ///< additional visits of each sample in an epoch
    std::int64_t repeats_asked = 0;                ///< as configured
    std::int64_t merged = 0;                       ///< of the samples those that came from buckets that were too small
    std::int64_t train_batch_size = 0;             ///< of its data set; 0: that of BatchShape
    std::optional<config::SmallBuckets> if_small;  ///< `small_buckets` of its data set
};

/// What one optimizer step consumes.
struct BatchShape {
    std::int64_t train_batch_size = 1;  ///< samples of one rank in one micro-batch
    std::int64_t ranks = 1;
    std::int64_t gradient_accumulation_steps = 1;
    bool each_once =
        false;  ///< an epoch shows every sample once: no bucket is too small, because last batches are short
    [[nodiscard]] constexpr std::int64_t micro() const noexcept { return train_batch_size * ranks; }
    [[nodiscard]] constexpr std::int64_t effective() const noexcept { return micro() * gradient_accumulation_steps; }
};
static_assert(BatchShape{4, 8, 2}.effective() == 64);

/// What a step of a data set consumes.
///
///   train_batch_size  the data set's own; 0: that of `shape`
[[nodiscard]] constexpr BatchShape batch_shape(BatchShape shape, std::int64_t train_batch_size) noexcept {
    if (train_batch_size > 0) shape.train_batch_size = train_batch_size;
    return shape;
}
static_assert(batch_shape({4, 8, 2}, 1).effective() == 16);

/// Samples of a step of the bucket's data set.
[[nodiscard]] inline std::int64_t effective_batch(const Bucket& bucket, const BatchShape& shape) noexcept {
    return batch_shape(shape, bucket.train_batch_size).effective();
}
/// Visits of a round, count * (repeats + 1), are fewer than that, and a batch must be full.
[[nodiscard]] inline bool is_small(const Bucket& bucket, const BatchShape& shape) noexcept {
    return !shape.each_once &&
           static_cast<std::int64_t>(bucket.samples.size()) * (bucket.repeats + 1) < effective_batch(bucket, shape);
}

/// The buckets of one data set that hold at least one picture, narrowest first.
///
///   pictures  sizes of the data set's samples; their order is that of Bucket::samples
[[nodiscard]] std::vector<Bucket> fill_buckets(std::size_t dataset, const config::ImageDataset& settings,
                                               const pictures::Framer& framer,
                                               const std::vector<pictures::PictureSize>& pictures);

/// Samples of small buckets go to the bucket of their data set that is nearest in log(width / height), of several
/// training sizes in the mean by their weights; of two equally near ones to that nearer to a square. The bucket with the
/// fewest samples goes first, and again until none is small or one is left. Data sets with `small_buckets` merge only.
void merge_small_buckets(std::vector<Bucket>& buckets, const BatchShape& shape);

/// Indices of the small buckets of data sets with `small_buckets` drop.
[[nodiscard]] std::vector<std::size_t> buckets_to_drop(const std::vector<Bucket>& buckets, const BatchShape& shape);

/// Makes sure that no bucket is small. Where `small_buckets` is repeat their repeats are raised; not where the data
/// set's repeats were set, which stay as they are.
///
///   allow_oversubscription  a data set that does not say `small_buckets` has repeat; false: refuse
///
/// Throws Errc::small_bucket that lists each bucket that stays small with its count, the repeats it needs and the ways
/// out: what each of the other values of `small_buckets` would do, in numbers.
void require_effective_batch(std::vector<Bucket>& buckets, const BatchShape& shape, bool allow_oversubscription);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/bucket_table.ipp>
#endif
