#pragma once
// strata/config/dataset_list.hpp - multidatabackend.json: which pictures, where their caches are, how they are used.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <strata/config/dataset.hpp>
#include <strata/config/document.hpp>

namespace strata::config {

/// A folder, or the keys of a bucket that begin alike.
struct CachePlace {
    StoreType type = StoreType::local;
    std::filesystem::path folder;               ///< of type local
    S3Settings s3;                              ///< of type aws; its data_prefix is all of the place
    std::optional<bool> compress_disk_cache{};  ///< nullopt: as the trainer says
};

/// A checked dataset list: ids are unique, every link leads somewhere, disabled entries are left out.
struct DatasetList {
    std::vector<ImageDataset> images;        ///< to train on; at least one, and one that takes part from the start
    std::vector<ImageDataset> eval;          ///< to evaluate with
    std::vector<ImageDataset> conditioning;  ///< pictures that belong to those of images and eval; some may be unused
    std::vector<TextEmbeds> text_embeds;
    std::vector<ImageEmbeds> image_embeds;

    /// For each data set to evaluate with a list of that one, as something to train on: each picture once.
    [[nodiscard]] std::vector<DatasetList> evaluated() const;

    /// Throws Errc::bad_reference.
    [[nodiscard]] const TextEmbeds& text_embeds_of(const ImageDataset& dataset) const;

    /// The data sets that `conditioning_data` of a data set names, as indices of `conditioning`, in its order. Throws
    /// Errc::bad_reference.
    [[nodiscard]] std::vector<std::size_t> conditioning_of(const ImageDataset& dataset) const;

    /// Where the latents of a data set are kept: in the store of its ImageEmbeds, else in its own; there in its
    /// `cache_dir_vae`, else in the ImageEmbeds' `cache_dir`. A bucket's `cache_dir_vae` stands beside
    /// `aws_data_prefix` and not below it, so that listing pictures lists no latents. The folder is empty where
    /// vae_cache_disable is true and none is named. Throws Errc::bad_reference.
    [[nodiscard]] CachePlace latent_cache_of(const ImageDataset& dataset) const;
};

/// Where a TextEmbeds keeps captions.
[[nodiscard]] CachePlace text_cache_of(const TextEmbeds& embeds);

/// Reads a list of data sets. Paths are relative to the working directory. Of a disabled entry only `id` is looked at.
///
///   defaults  values of keys that an image entry does not have (TrainerConfig::image_defaults)
///
/// Throws Errc::unreadable_config, unknown_key, unsupported_key, bad_value, bad_reference, each naming
/// the place and the entry's key, as in "data.json:4:7: key '[1].repeats' ...", and all that is wrong at once
/// (SeveralProblems). Secrets are in no message.
[[nodiscard]] DatasetList load_datasets(const std::filesystem::path& file, const ImageDataset& defaults = {});

/// The same of a document that is loaded.
[[nodiscard]] DatasetList read_datasets(const Document& document, const ImageDataset& defaults = {});

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/dataset_list.ipp>
#endif
