#pragma once
// strata/config/dataset.hpp - the entries of a dataset list: pictures, places for embedded captions, places for
// latents.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <strata/config/schema.hpp>
#include <strata/core/secret.hpp>

namespace strata::config {

/// What the number in `resolution` and the other sizes counts.
enum class ResolutionType : std::uint8_t {
    pixel,       ///< pixels of the shorter edge
    area,        ///< megapixels
    pixel_area,  ///< pixels of the edge of a square with the same area
};

/// Where a caption comes from.
enum class CaptionStrategy : std::uint8_t {
    textfile,        ///< the lines with text in the .txt beside the picture
    filename,        ///< the file's name without folder and extension, '_' and '-' as spaces
    instanceprompt,  ///< `instance_prompt` for every picture
    parquet,         ///< a column of the table that ParquetColumns names
    json,            ///< member "caption" of the object in the .json beside the picture
    csv,             ///< a column of the list that UrlList names
};

/// Which shapes pictures are cropped to.
enum class CropAspect : std::uint8_t {
    square,    ///< one square bucket, when `crop` is true
    preserve,  ///< the bucket nearest in aspect ratio
    closest,   ///< that of `crop_aspect_buckets` nearest to the picture's aspect ratio
    random,    ///< one of `crop_aspect_buckets`, drawn anew for each epoch
};

/// Which part of a picture is kept, when `crop` is true.
enum class CropStyle : std::uint8_t {
    center,
    corner,  ///< the upper left
    random,  ///< drawn anew for each epoch
};

enum class StoreType : std::uint8_t {
    local,
    aws,
    csv,  ///< of pictures alone: addresses in a list
};
enum class DatasetType : std::uint8_t { image, eval, text_embeds, image_embeds, conditioning };

/// What the pictures of a conditioning data set are.
enum class ConditioningType : std::uint8_t {
    controlnet,        ///< edges, depth, poses: what a ControlNet is shown beside the noise
    mask,              ///< white where it counts: what is painted anew, or where the loss is taken
    reference_strict,  ///< the picture before it was edited: image to image
};

enum class MetadataBackend : std::uint8_t {
    discovery,  ///< sizes from the headers of the pictures
    parquet,    ///< sizes from columns of the table that ParquetColumns names
};

/// What becomes of a bucket that holds fewer samples than an effective batch.
enum class SmallBuckets : std::uint8_t {
    refuse,  ///< the run stops before anything is encoded, and says what the others would do
    merge,   ///< its samples go to the bucket of the data set that is nearest in aspect ratio
    drop,    ///< its samples take no part, and are counted and named
    repeat,  ///< its repeats are raised; repeats that were set stay as they are
};

/// In which order data sets are drawn in an epoch; how much of each an epoch shows is the same.
enum class DataBackendSampling : std::uint8_t {
    auto_weighting,  ///< in proportion to their batches: all of them from the epoch's begin to its end
    uniform,         ///< in proportion to `probability` alone: as often as each other, until one is used up
};

/// An S3 bucket: the keys that begin with `aws_`. What is empty is found as s3::S3Options says.
struct S3Settings {
    std::string bucket;
    std::string region;
    std::string endpoint_url;
    std::string access_key_id;
    Secret secret_access_key;
    Secret session_token;
    std::string data_prefix;                  ///< what all keys have in front
    std::int64_t max_pool_connections = 128;  ///< requests at once
};

/// A list of addresses: the keys that begin with `csv_`.
struct UrlList {
    std::filesystem::path file;              ///< a table: .csv, .tsv, .jsonl or .parquet
    std::string url_column = "url";          ///< http and https addresses
    std::string caption_column;              ///< of caption_strategy csv
    std::filesystem::path cache_dir;         ///< where pictures are kept once they were fetched
    std::int64_t max_pool_connections = 16;  ///< requests at once
};

/// One shape of `crop_aspect_buckets`.
struct CropAspectBucket {
    double aspect = 1;  ///< width / height
    double weight = 1;  ///< probability of being drawn; those of a list sum to 1
};

/// A table with one row a picture: the object `parquet`.
struct ParquetColumns {
    std::string path;             ///< a file's path; of type aws an object below `aws_data_prefix`; .parquet or .jsonl
    std::string filename_column;  ///< names of pictures as they are below the data set's folder
    std::vector<std::string> caption_column;           ///< of several with text one is drawn for each visit
    std::vector<std::string> fallback_caption_column;  ///< used where all of caption_column are empty
    std::string width_column = "width";                ///< pixels
    std::string height_column = "height";              ///< pixels
    bool identifier_includes_extension = false;        ///< false: ".png" is added to the names
};

enum class CaptionSeparator : std::uint8_t { comma, space, period };

/// Captions with their tags in other orders: the object `caption_shuffle`.
struct CaptionShuffle {
    bool enable = false;
    std::int64_t count = 1;            ///< orders made of each caption
    std::optional<std::int64_t> seed;  ///< nullopt: the trainer's
    CaptionSeparator split_on = CaptionSeparator::comma;
    std::int64_t position_start = 0;  ///< tags in front that stay; fewer than this + 2 tags are not shuffled
    bool include_original = true;
};

/// Steps of a start that `skip_file_discovery` leaves to what an earlier start has written.
struct SkipDiscovery {
    bool vae = false;       ///< cached latents are not looked for
    bool aspect = false;    ///< pictures keep the buckets they had
    bool metadata = false;  ///< pictures are not listed and their headers not read
    bool text = false;      ///< embedded captions are not looked for
};

/// A folder of captioned pictures, to train on or to evaluate with; or of pictures that belong to these.
struct ImageDataset {
    std::string id;
    StoreType type = StoreType::local;
    DatasetType dataset_type = DatasetType::image;  ///< image, eval or conditioning
    bool disabled = false;
    S3Settings s3;                            ///< of type aws; its data_prefix is the folder of the pictures
    std::filesystem::path instance_data_dir;  ///< of type local
    UrlList csv;                              ///< of type csv
    std::string shards;                       ///< names of tar files below the folder, "{000..127}.tar"; empty: no tars
    std::filesystem::path cache_dir_vae;      ///< see DatasetList::latent_cache_of
    std::string text_embeds;                  ///< id of the TextEmbeds; filled in by load_datasets
    std::string image_embeds;                 ///< id of an ImageEmbeds; empty: latents are in the data set's own store

    /// Of image and eval: ids of the conditioning data sets that have a picture for each of its own, by name, in the order
    /// in which a model takes them.
    std::vector<std::string> conditioning_data;
    ConditioningType conditioning_type = ConditioningType::controlnet;  ///< of conditioning
    std::string source_dataset_id;  ///< of conditioning: an image or eval that names it; empty: any

    // Sizes are in the unit of resolution_type.
    double resolution = 1024;
    ResolutionType resolution_type = ResolutionType::pixel_area;
    double minimum_image_size = 0;      ///< 0: none
    double maximum_image_size = 0;      ///< 0: none; larger pictures are resized before they are cropped, to ...
    double target_downsample_size = 0;  ///< ... this size; 0 exactly when maximum_image_size is
    double minimum_aspect_ratio = 0.25;
    double maximum_aspect_ratio = 4;

    bool crop = false;  ///< without it the other keys of cropping have no say
    CropStyle crop_style = CropStyle::center;
    CropAspect crop_aspect = CropAspect::square;
    std::vector<CropAspectBucket> crop_aspect_buckets;  ///< of closest and random
    std::optional<double> max_upscale_threshold;        ///< 0.2: buckets up to 20 % larger; of closest and random

    std::int64_t repeats = 0;          ///< additional visits of each picture in an epoch
    double probability = 1;            ///< share of its batches that an epoch shows, above 0; see datasets::SamplePlan
    std::int64_t max_num_samples = 0;  ///< 0: all; else so many, drawn by the data set's id
    std::int64_t start_epoch = 1;      ///< first epoch the data set takes part in, from 1
    std::int64_t end_epoch = 0;        ///< last one; 0: no end
    std::int64_t start_step = 0;       ///< first optimizer step it takes part in; 0 and 1: from the start
    std::int64_t end_step = 0;         ///< last one; 0: no end
    std::int64_t disable_after_epoch_step = 0;  ///< of each epoch: drawn ever less until this step; 0: to its end
    std::int64_t train_batch_size = 0;          ///< samples of one rank in one micro-batch; 0: as the trainer says
    std::optional<SmallBuckets> small_buckets;  ///< nullopt: refuse, or repeat with allow_dataset_oversubscription
    bool is_regularisation_data = false;

    CaptionStrategy caption_strategy = CaptionStrategy::textfile;
    std::string instance_prompt;
    bool prepend_instance_prompt = false;  ///< in front of each caption, with a space between
    bool only_instance_prompt = false;     ///< instead of each caption
    bool disable_multiline_split = false;  ///< false: each line of a caption file is a caption; true: all are one
    std::optional<CaptionShuffle> caption_shuffle;
    /// What is taken out of captions or replaced in them, see datasets::CaptionFilter; load_datasets fills in that of
    /// the TextEmbeds where the data set has none.
    std::vector<std::string> caption_filter_list;
    MetadataBackend metadata_backend = MetadataBackend::discovery;
    std::optional<ParquetColumns> parquet;  ///< has a value exactly when captions or sizes come from a table

    bool preserve_data_backend_cache = false;  ///< the listing of an earlier start is used again
    SkipDiscovery skip_file_discovery;
    bool vae_cache_ondemand = false;          ///< latents are made and kept at a picture's first visit
    bool vae_cache_disable = false;           ///< latents are made at each visit; none are written
    bool vae_cache_clear_each_epoch = false;  ///< latents are made anew for each epoch
    std::optional<bool> compress_disk_cache;  ///< latents inside gzip; nullopt: as ImageEmbeds, else the trainer, says
    bool scan_for_errors = false;             ///< every picture is decoded before the first step
    bool delete_problematic_images = false;   ///< pictures that cannot be decoded are removed from their store

    [[nodiscard]] bool is_eval() const noexcept { return dataset_type == DatasetType::eval; }
    [[nodiscard]] bool is_conditioning() const noexcept { return dataset_type == DatasetType::conditioning; }
    /// True if a picture's latents differ from epoch to epoch.
    [[nodiscard]] bool is_cropped_at_random() const noexcept {
        return crop && (crop_style == CropStyle::random || crop_aspect == CropAspect::random);
    }
};

/// Where embedded captions are kept.
struct TextEmbeds {
    std::string id;
    StoreType type = StoreType::local;
    DatasetType dataset_type = DatasetType::text_embeds;
    bool disabled = false;
    bool is_default = false;
    S3Settings s3;                                 ///< of type aws
    std::filesystem::path cache_dir;               ///< a folder; of type aws below s3.data_prefix, and may be empty
    std::optional<bool> compress_disk_cache;       ///< entries inside gzip; nullopt: as the trainer says
    std::vector<std::string> caption_filter_list;  ///< of data sets that are embedded here and have none
};

/// Where latents are kept that are not beside their pictures.
struct ImageEmbeds {
    std::string id;
    StoreType type = StoreType::local;
    DatasetType dataset_type = DatasetType::image_embeds;
    bool disabled = false;
    S3Settings s3;                    ///< of type aws
    std::filesystem::path cache_dir;  ///< as in TextEmbeds; empty: the data set's `cache_dir_vae` names the folder
    std::optional<bool> compress_disk_cache;  ///< as in TextEmbeds
};

/// The keys of an entry by its `dataset_type`, and of the objects inside one. image_schema is that of eval as well.
[[nodiscard]] const Schema<ImageDataset>& image_schema();
[[nodiscard]] const Schema<ImageDataset>& conditioning_schema();
[[nodiscard]] const Schema<TextEmbeds>& text_embeds_schema();
[[nodiscard]] const Schema<ImageEmbeds>& image_embeds_schema();
[[nodiscard]] const Schema<S3Settings>& s3_schema();
[[nodiscard]] const Schema<UrlList>& url_list_schema();
[[nodiscard]] const Schema<ParquetColumns>& parquet_schema();
[[nodiscard]] const Schema<CaptionShuffle>& caption_shuffle_schema();

}  // namespace strata::config

#ifndef STRATA_COMPILED
#include <strata/config/impl/dataset.ipp>
#endif
