#pragma once
// strata/datasets/report.hpp - what was found, what was left out and why, and what the caches did.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace strata::datasets {

/// Why a picture takes no part.
enum class SkipReason : std::uint8_t {
    no_caption,            ///< no caption file, or none of its lines has text
    below_minimum_size,    ///< smaller than minimum_image_size
    outside_aspect_ratio,  ///< narrower or wider than the data set's limits
    unreadable,            ///< damaged, or it cannot be opened
    unsupported_format,    ///< a picture, but of no format or kind that this program decodes
    not_in_table,          ///< metadata_backend parquet: no row names it, or its row has no size
    small_bucket,          ///< small_buckets drop: its bucket holds fewer samples than an effective batch
    unpaired,              ///< a data set of conditioning_data has no picture of its name that can be used
};
inline constexpr int skip_reasons = 8;

/// "no caption", "below the minimum size", ...
[[nodiscard]] std::string_view name_of(SkipReason reason) noexcept;

/// A picture that was left out.
struct Skipped {
    std::string dataset;  ///< id
    std::string place;    ///< path
    SkipReason reason = SkipReason::unreadable;
    std::string detail;  ///< such as "32 x 40 pixels"; may be empty
};

/// A bucket that is trained on.
struct BucketReport {
    std::string dataset;
    std::int64_t width = 0;  ///< pixels
    std::int64_t height = 0;
    std::int64_t shapes = 1;   ///< training sizes that each batch draws one of; width and height are of the narrowest
    std::int64_t count = 0;    ///< samples
    std::int64_t repeats = 0;  ///< additional visits in an epoch, as they are used
    std::int64_t repeats_asked = 0;    ///< as configured; less than `repeats` when the bucket was oversubscribed
    std::int64_t merged = 0;           ///< of the samples those of smaller buckets (small_buckets merge)
    std::int64_t effective_batch = 0;  ///< samples of a step of its data set
};

/// What filling a cache did, summed over the ranks.
struct CacheReport {
    std::int64_t entries = 0;           ///< needed
    std::int64_t made = 0;              ///< now, because they were not there or could not be used
    std::vector<std::string> rebuilt;   ///< places of damaged entries that were made again
    std::vector<std::string> replaced;  ///< places of entries without check sum, of an earlier version, made again
};

/// A line for each kind of entry that was made again: how many, and the first few places. None where there were none.
///
///   what  of which cache: "latents"
[[nodiscard]] std::vector<std::string> remade_lines(std::string_view what, const CacheReport& report);

/// Everything worth telling a person about a data set before training. The same on every rank, but for
/// entries of `latents` and `texts` that a rank makes again later on.
struct Report {
    std::int64_t found = 0;  ///< files that are pictures by their names
    std::int64_t used = 0;   ///< samples that are trained on
    std::vector<Skipped> skipped;
    std::vector<Skipped> broken;     ///< samples whose turns go to the next of their bucket; see BrokenSamples
    std::vector<std::string> notes;  ///< what discovery did and found besides, a line each
    std::vector<BucketReport> buckets;
    CacheReport latents;
    CacheReport texts;
    std::int64_t effective_batch = 0;  ///< train_batch_size * ranks * gradient_accumulation_steps; of data sets without
                                       ///< their own train_batch_size
    std::int64_t steps_per_epoch = 0;  ///< optimizer steps of the first epoch

    [[nodiscard]] std::int64_t count(SkipReason reason) const noexcept;

    /// The report as lines for a terminal, without line ends: what was skipped takes one line a reason. Of damaged files and
    /// of those without a conditioning picture the first few are named in it, of others the first one.
    ///
    ///   names_file  where write_skipped() put all names, which is said; empty: nowhere
    [[nodiscard]] std::vector<std::string> lines(const std::filesystem::path& names_file = {}) const;

    /// All skipped pictures, a line each: reason, data set, place and detail between tabs, control characters as \xNN.
    /// Where none was skipped, a list that an earlier run left is removed. Throws what storage::write_file() does.
    ///
    ///   returns  `file`, or an empty path where nothing was skipped: what lines() takes
    std::filesystem::path write_skipped(const std::filesystem::path& file) const;
};

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/report.ipp>
#endif
