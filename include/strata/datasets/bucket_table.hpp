#pragma once
// strata/datasets/bucket_table.hpp - samples sorted into buckets, and the check that every bucket holds a batch.

#include <cstdint>
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
    pictures::PictureSize size;           ///< the training size; of several the narrowest
    std::vector<pictures::Shape> shapes;  ///< all of them; at least one
    std::vector<std::size_t> samples;     ///< indices of the data set's samples, ascending
    std::int64_t repeats = 0;             ///< additional visits of each sample in an epoch
    std::int64_t repeats_asked = 0;       ///< as configured
};

/// What one optimizer step consumes.
struct BatchShape {
    std::int64_t train_batch_size = 1;  ///< samples of one rank in one micro-batch
    std::int64_t ranks = 1;
    std::int64_t gradient_accumulation_steps = 1;
    [[nodiscard]] constexpr std::int64_t micro() const noexcept { return train_batch_size * ranks; }
    [[nodiscard]] constexpr std::int64_t effective() const noexcept { return micro() * gradient_accumulation_steps; }
};
static_assert(BatchShape{4, 8, 2}.effective() == 64);

/// The buckets of one data set that hold at least one picture, narrowest first.
///
///   pictures  sizes of the data set's samples; their order is that of Bucket::samples
[[nodiscard]] std::vector<Bucket> fill_buckets(std::size_t dataset, const config::ImageDataset& settings,
                                               const pictures::Framer& framer,
                                               const std::vector<pictures::PictureSize>& pictures);

/// Makes sure that count * (repeats + 1) of every bucket is at least one effective batch.
///
///   allow_oversubscription  raise the repeats of buckets that are too small instead of refusing them; not where the
///                           data set's repeats were set, which stay as they are
///
/// Throws Errc::small_bucket that lists each such bucket with its count, the repeats it needs and the ways out.
void require_effective_batch(std::vector<Bucket>& buckets, const BatchShape& shape, bool allow_oversubscription);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/bucket_table.ipp>
#endif
