#pragma once
// strata/datasets/cache_cost.hpp - how many bytes caches will take, before anything is encoded.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/datasets/bucket_table.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/storage/safetensors.hpp>

namespace strata::datasets {

/// What the size of cache entries follows from: a recipe without what its encoders compute. data::entry_shapes() has
/// that of any Recipe.
struct EntryShapes {
    std::string picture_id;  ///< stands in every entry
    /// Of a picture of that training size, in the order of their names.
    std::function<std::vector<storage::TensorOutline>(const pictures::PictureSize& target)> picture_tensors;
    std::string caption_id;
    std::vector<storage::TensorOutline> caption_tensors;  ///< in the order of their names
    std::optional<std::string>
        dropped_caption;  ///< what is cached in the place of a dropped caption; nothing: no entry
};

/// Entries and their bytes on disk, without gzip.
struct CacheCost {
    std::int64_t entries = 0;
    std::uint64_t bytes = 0;
    CacheCost& operator+=(const CacheCost& other) noexcept {
        entries += other.entries;
        bytes += other.bytes;
        return *this;
    }
};

/// Bytes of one entry: a safetensors file with these tensors, and its identity in the metadata (pack_entry()).
[[nodiscard]] std::uint64_t entry_bytes(const std::vector<storage::TensorOutline>& tensors, std::string_view identity);

/// The latents of a bucket as latent_caching() has its data set: with ahead and on_demand those of all pictures, with
/// none nothing. With each_epoch those of one epoch: where an epoch shows a part of a round only, or several sizes are
/// drawn from, the mean over epochs.
/// Pictures that hold the same share an entry and are counted once, as far as it is known what they hold: an index
/// knows it of pictures that were read.
[[nodiscard]] CacheCost latent_cost(const PictureSet& set, const Bucket& bucket, const EntryShapes& recipe);

/// The embedded captions of one cache; what stands in for a dropped caption is among them, if it is meant to be.
[[nodiscard]] CacheCost text_cost(const std::set<std::string>& captions, const EntryShapes& recipe);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/cache_cost.ipp>
#endif
