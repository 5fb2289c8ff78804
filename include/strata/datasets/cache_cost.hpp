#pragma once
// strata/datasets/cache_cost.hpp - how many bytes caches will take, before anything is encoded.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <strata/core/inline.hpp>
#include <strata/datasets/bucket_table.hpp>
#include <strata/datasets/collection.hpp>
#include <strata/pictures/picture.hpp>

namespace strata::datasets {

/// What the size of cache entries follows from: an Autoencoder and a TextEncoder without what they compute.
struct EncoderSizes {
    std::string autoencoder;  ///< id(); stands in every entry
    std::int64_t latent_channels = 16;
    std::int64_t pixels_per_latent = 8;
    std::string text_encoder;  ///< id()
    std::int64_t tokens = 0;   ///< T of TextEmbedding::tokens (T, E)
    std::int64_t token_width = 0;
    std::int64_t pooled_width = 0;
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

/// Bytes of one entry: a safetensors file of fp32 tensors with its identity in the metadata (pack_entry()).
///
///   target  training size
[[nodiscard]] std::uint64_t latent_entry_bytes(const EncoderSizes& encoders, const pictures::PictureSize& target,
                                               std::string_view identity);
[[nodiscard]] std::uint64_t text_entry_bytes(const EncoderSizes& encoders, std::string_view identity);

/// The latents of a bucket as latent_caching() has its data set: with ahead and on_demand those of all pictures, with
/// none nothing. With each_epoch those of one epoch: where an epoch shows a part of a round only, or several sizes are
/// drawn from, the mean over epochs.
/// Equal pictures, which share an entry, are counted each: what they hold need not be known yet.
[[nodiscard]] CacheCost latent_cost(const PictureSet& set, const Bucket& bucket, const EncoderSizes& encoders);

/// The embedded captions of one cache; the empty one of caption dropout is among them, if it is meant to be.
[[nodiscard]] CacheCost text_cost(const std::set<std::string>& captions, const EncoderSizes& encoders);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/cache_cost.ipp>
#endif
