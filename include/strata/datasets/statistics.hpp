#pragma once
// strata/datasets/statistics.hpp - how large pictures are, how long captions are, and how many turns a round has.

#include <cstdint>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/datasets/bucket_table.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/datasets/sample.hpp>
#include <strata/datasets/sample_plan.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::datasets {

/// Smallest, middle and largest of some numbers; zeros where there are none.
struct Spread {
    double smallest = 0;
    double median = 0;  ///< of an even count the mean of the two in the middle
    double largest = 0;
};
/// Cost: linear.
[[nodiscard]] Spread spread_of(std::vector<double> numbers);

/// The pictures of a data set.
struct PictureStatistics {
    std::int64_t count = 0;
    std::uint64_t bytes = 0;         ///< of all files
    pictures::PictureSize smallest;  ///< by area; of equal areas the narrowest comes first
    pictures::PictureSize median;    ///< of an even count the smaller one of the two in the middle
    pictures::PictureSize largest;
    Spread megapixels;
    Spread aspect_ratio;  ///< width / height
    Spread file_bytes;
};
[[nodiscard]] PictureStatistics picture_statistics(const std::vector<Sample>& samples);

/// The captions of a data set.
struct CaptionStatistics {
    std::int64_t found = 0;              ///< lines, columns, names: what stands beside the pictures
    std::vector<std::string> different;  ///< that a visit may show: CaptionRule::all() of all pictures, sorted
    Spread characters;                   ///< of those; UTF-8 code points
};
///   seed  the trainer's: caption_shuffle may follow from it
[[nodiscard]] CaptionStatistics caption_statistics(const PictureSet& set, std::uint64_t seed);

/// A bucket's part of a round of its data set, see SamplePlan.
struct RoundStatistics {
    std::int64_t turns = 0;    ///< samples x (repeats + 1)
    std::int64_t batches = 0;  ///< of global_batch samples
    std::int64_t filled = 0;   ///< turns on top, that the remainder rule fills the last batch with
    RoundStatistics& operator+=(const RoundStatistics& other) noexcept {
        turns += other.turns;
        batches += other.batches;
        filled += other.filled;
        return *this;
    }
};
[[nodiscard]] RoundStatistics round_statistics(const Bucket& bucket, std::int64_t global_batch);

/// How many steps of an epoch each data set has. Cost: that of asking for all of them.
///
///   epoch  from 0
///   sets   data sets in the plan
[[nodiscard]] std::vector<std::int64_t> batches_by_set(const SamplePlan& plan, std::int64_t epoch, std::size_t sets);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/statistics.ipp>
#endif
