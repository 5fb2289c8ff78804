#pragma once
// strata/data/report.hpp - what was found, what was left out and why, and what the caches did.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata::data {

/// Why a picture takes no part.
enum class SkipReason : std::uint8_t {
    no_caption,             ///< no caption file, or none of its lines has text
    below_minimum_size,     ///< smaller than minimum_image_size
    outside_aspect_ratio,   ///< narrower or wider than the data set's limits
    unreadable,             ///< damaged, or it cannot be opened
    unsupported_format,     ///< a picture, but no PNG, JPEG or WebP that is decoded
    not_in_table,           ///< metadata_backend parquet: no row names it, or its row has no size
};
inline constexpr int skip_reasons = 6;

/// "no caption", "below the minimum size", ...
[[nodiscard]] std::string_view name_of(SkipReason reason) noexcept;

/// A picture that was left out.
struct Skipped {
    std::string dataset;  ///< id
    std::string place;    ///< path
    SkipReason reason = SkipReason::unreadable;
    std::string detail;   ///< such as "32 x 40 pixels"; may be empty
};

/// A bucket that is trained on.
struct BucketReport {
    std::string dataset;
    std::int64_t width = 0;   ///< pixels
    std::int64_t height = 0;
    std::int64_t shapes = 1;  ///< training sizes that each batch draws one of; width and height are of the narrowest
    std::int64_t count = 0;   ///< samples
    std::int64_t repeats = 0;  ///< additional visits in an epoch, as they are used
    std::int64_t repeats_asked = 0;  ///< as configured; less than `repeats` when the bucket was oversubscribed
};

/// What filling a cache did, summed over the ranks.
struct CacheReport {
    std::int64_t entries = 0;  ///< needed
    std::int64_t made = 0;     ///< that were not there
    std::vector<std::string> rebuilt;  ///< places of damaged entries that were made again
};

/// Everything worth telling a person about a data set before training. The same on every rank, but for
/// entries of `latents.rebuilt` and `texts.rebuilt` that a rank finds damaged later on.
struct Report {
    std::int64_t found = 0;  ///< files that are pictures by their names
    std::int64_t used = 0;   ///< samples that are trained on
    std::vector<Skipped> skipped;
    std::vector<std::string> notes;  ///< what discovery did and found besides, a line each
    std::vector<BucketReport> buckets;
    CacheReport latents;
    CacheReport texts;
    std::int64_t effective_batch = 0;        ///< train_batch_size * ranks * gradient_accumulation_steps
    std::int64_t steps_per_epoch = 0;  ///< optimizer steps of the first epoch

    [[nodiscard]] std::int64_t count(SkipReason reason) const noexcept;

    /// The report as lines for a terminal, without line ends.
    ///
    ///   most_names  skipped pictures named per reason; the rest is counted
    [[nodiscard]] std::vector<std::string> lines(std::int64_t most_names = 10) const;
};

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/report.ipp>
#endif
