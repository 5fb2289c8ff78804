#pragma once
// strata/config/dataset_list.hpp - multidatabackend.json: which pictures, where their caches are, how they are used.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <strata/config/schema.hpp>

namespace strata::config {

/// What the number in `resolution` and `minimum_image_size` counts.
enum class ResolutionType : std::uint8_t {
    pixel,       ///< pixels of the shorter edge
    area,        ///< megapixels
    pixel_area,  ///< pixels of the edge of a square with the same area
};

/// Where a caption comes from.
enum class CaptionStrategy : std::uint8_t {
    textfile,        ///< first line with text in the .txt beside the picture
    filename,        ///< the file's name without folder and extension, '_' and '-' as spaces
    instanceprompt,  ///< `instance_prompt` for every picture
};

/// Which shapes pictures are cropped to.
enum class CropAspect : std::uint8_t {
    square,    ///< one square bucket, when `crop` is true
    preserve,  ///< the bucket nearest in aspect ratio
};

enum class StoreType : std::uint8_t { local };
enum class DatasetType : std::uint8_t { image, text_embeds };
enum class CropStyle : std::uint8_t { center };
enum class MetadataBackend : std::uint8_t { discovery };

/// A folder of captioned pictures.
struct ImageDataset {
    std::string id;
    StoreType type = StoreType::local;
    DatasetType dataset_type = DatasetType::image;
    bool disabled = false;
    std::filesystem::path instance_data_dir;
    std::filesystem::path cache_dir_vae;
    std::string text_embeds;  ///< id of the TextEmbeds; filled in by load_datasets
    double resolution = 1024;
    ResolutionType resolution_type = ResolutionType::pixel_area;
    double minimum_image_size = 0;  ///< 0: none; in the unit of resolution_type
    double minimum_aspect_ratio = 0.25;
    double maximum_aspect_ratio = 4;
    bool crop = false;
    CropStyle crop_style = CropStyle::center;
    CropAspect crop_aspect = CropAspect::square;
    std::int64_t repeats = 0;  ///< additional visits of each picture in an epoch
    CaptionStrategy caption_strategy = CaptionStrategy::textfile;
    std::string instance_prompt;
    MetadataBackend metadata_backend = MetadataBackend::discovery;
};

/// Where embedded captions are kept.
struct TextEmbeds {
    std::string id;
    StoreType type = StoreType::local;
    DatasetType dataset_type = DatasetType::text_embeds;
    bool disabled = false;
    bool is_default = false;
    std::filesystem::path cache_dir;
};

/// A checked dataset list: ids are unique, every link leads somewhere, disabled entries are left out.
struct DatasetList {
    std::vector<ImageDataset> images;
    std::vector<TextEmbeds> text_embeds;

    /// Throws Errc::bad_reference.
    [[nodiscard]] const TextEmbeds& text_embeds_of(const ImageDataset& dataset) const;
};

/// The keys of an entry with `dataset_type` image, and of one with text_embeds.
[[nodiscard]] const Schema<ImageDataset>& image_schema();
[[nodiscard]] const Schema<TextEmbeds>& text_embeds_schema();

/// Reads a list of data sets. Paths are relative to the working directory.
///
///   defaults  values of keys that an image entry does not have (TrainerConfig::image_defaults)
///
/// Throws Errc::unreadable_config, unknown_key, unsupported_key, bad_value, bad_reference, each naming
/// the file and the entry's key, as in "data.json: key '[1].repeats' ...".
[[nodiscard]] DatasetList load_datasets(const std::filesystem::path& file, const ImageDataset& defaults = {});

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/dataset_list.ipp>
#endif
