#pragma once
// strata/config/impl/dataset_checks.ipp - what must hold between the keys of one entry.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <strata/config/dataset.hpp>
#include <strata/config/impl/key.ipp>

namespace strata::config::detail {

/// An entry of the file, for messages.
struct Place {
    Source source;
    std::string path;  ///< "[2]."

    /// "data.json:12:5" of the entry.
    [[nodiscard]] std::string at() const { return source.at(std::string_view{path}.substr(0, path.size() - 1)); }

    /// Throws Errc::bad_value: "data.json:12:5: key '[2].crop' <problem>".
    [[noreturn]] void refuse(std::string_view key, std::string_view problem, std::string_view fix) const {
        throw Error{Errc::bad_value, place_of(source, path, std::string{key}) + " " + std::string{problem}, fix};
    }
};

inline void check_store(StoreType type, const S3Settings& s3, const Place& place) {
    const std::array<std::pair<std::string_view, bool>, 7> given{
        {{"aws_bucket_name", !s3.bucket.empty()},
         {"aws_region_name", !s3.region.empty()},
         {"aws_endpoint_url", !s3.endpoint_url.empty()},
         {"aws_access_key_id", !s3.access_key_id.empty()},
         {"aws_secret_access_key", !s3.secret_access_key.empty()},
         {"aws_session_token", !s3.session_token.empty()},
         {"aws_data_prefix", !s3.data_prefix.empty()}}};
    if (type != StoreType::aws) {
        for (const auto& [key, is_given] : given)
            if (is_given) place.refuse(key, "is given, and type is not aws", "set type to aws, or remove the key");
        return;
    }
    if (s3.bucket.empty()) place.refuse("aws_bucket_name", "is missing, and type is aws", "name the bucket");
    if (s3.access_key_id.empty() != s3.secret_access_key.empty())
        place.refuse(s3.access_key_id.empty() ? "aws_access_key_id" : "aws_secret_access_key",
                     "is missing, and its other half is given",
                     "give both, or none and export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
    if (!s3.session_token.empty() && s3.access_key_id.empty())
        place.refuse("aws_session_token", "is given without aws_access_key_id and aws_secret_access_key",
                     "give the two keys the token belongs to");
}

/// Numbers whose unit is resolution_type's: megapixels where pixels are asked for, and pixels where megapixels are.
inline void check_units(const ImageDataset& dataset, const Place& place) {
    const bool is_area = dataset.resolution_type == ResolutionType::area;
    const auto check = [&](std::string_view key, double size, double least) {
        if (is_area && size > 20)
            place.refuse(key, "is above 20, and resolution_type area counts megapixels",
                         "use 1.0 for 1024 x 1024, or set resolution_type to pixel_area");
        if (!is_area && size > 0 && size < least)
            place.refuse(key, "is below " + shown(least) + " pixels",
                         "use pixels, or set resolution_type to area for megapixels");
    };
    check("resolution", dataset.resolution, 8);
    check("minimum_image_size", dataset.minimum_image_size, 1);
    check("maximum_image_size", dataset.maximum_image_size, 8);
    check("target_downsample_size", dataset.target_downsample_size, 8);

    if (dataset.maximum_image_size > 0 && dataset.target_downsample_size == 0)
        place.refuse("target_downsample_size", "is missing, and maximum_image_size is given",
                     "say there what size larger pictures are reduced to, or remove maximum_image_size");
    if (dataset.maximum_image_size > 0 && dataset.target_downsample_size > dataset.maximum_image_size)
        place.refuse("target_downsample_size", "is larger than maximum_image_size, and pictures would be enlarged",
                     "use a size that is not larger than maximum_image_size");
}

inline void check_aspect_ratios(const ImageDataset& dataset, const Place& place) {
    if (dataset.minimum_aspect_ratio > dataset.maximum_aspect_ratio)
        place.refuse("minimum_aspect_ratio",
                     "is " + shown(dataset.minimum_aspect_ratio) + ", and maximum_aspect_ratio is " +
                         shown(dataset.maximum_aspect_ratio) + ": no picture is within",
                     "use a minimum that is not above the maximum");
}

inline void check_crop(const ImageDataset& dataset, const Place& place) {
    if (!dataset.crop) return;
    const bool from_list = dataset.crop_aspect == CropAspect::closest || dataset.crop_aspect == CropAspect::random;
    const std::string aspect = dataset.crop_aspect == CropAspect::closest ? "closest" : "random";
    if (from_list && dataset.crop_aspect_buckets.empty())
        place.refuse("crop_aspect_buckets", "is missing, and crop_aspect is " + aspect,
                     "list the aspect ratios there, as in [0.75, 1.0, 1.33]");
    if (!from_list && !dataset.crop_aspect_buckets.empty())
        place.refuse("crop_aspect_buckets", "is given, and crop_aspect is neither closest nor random",
                     "set crop_aspect to closest or random, or remove the list");
    if (!from_list && dataset.max_upscale_threshold)
        place.refuse("max_upscale_threshold", "is given, and crop_aspect is neither closest nor random",
                     "use minimum_image_size to leave small pictures out, or remove the key");
    for (const CropAspectBucket& bucket : dataset.crop_aspect_buckets)
        if (bucket.aspect < dataset.minimum_aspect_ratio || bucket.aspect > dataset.maximum_aspect_ratio)
            place.refuse("crop_aspect_buckets",
                         "has " + shown(bucket.aspect) +
                             ", which is not within minimum_aspect_ratio and "
                             "maximum_aspect_ratio (" +
                             shown(dataset.minimum_aspect_ratio) + " to " + shown(dataset.maximum_aspect_ratio) + ")",
                         "remove it, or widen the two limits");
    if (dataset.is_cropped_at_random() && !dataset.vae_cache_clear_each_epoch && !dataset.vae_cache_disable)
        place.refuse(dataset.crop_style == CropStyle::random ? "crop_style" : "crop_aspect",
                     "is random, and cached latents would keep the crop of the first epoch",
                     "set vae_cache_clear_each_epoch or vae_cache_disable to true, or use another crop");
}

inline void check_captions(const ImageDataset& dataset, const Place& place) {
    const bool by_prompt = dataset.caption_strategy == CaptionStrategy::instanceprompt;
    if (dataset.instance_prompt.empty() &&
        (by_prompt || dataset.only_instance_prompt || dataset.prepend_instance_prompt))
        place.refuse(
            "instance_prompt",
            std::string{"is missing, and "} + (by_prompt                      ? "caption_strategy is instanceprompt"
                                               : dataset.only_instance_prompt ? "only_instance_prompt is true"
                                                                              : "prepend_instance_prompt is true"),
            "write the caption there");
    const bool captions = dataset.caption_strategy == CaptionStrategy::parquet;
    const bool sizes = dataset.metadata_backend == MetadataBackend::parquet;
    if ((captions || sizes) && !dataset.parquet)
        place.refuse("parquet",
                     std::string{"is missing, and "} +
                         (captions ? "caption_strategy is parquet" : "metadata_backend is parquet"),
                     "name the table: {\"path\": ..., \"filename_column\": ..., \"caption_column\": ...}");
    if (!dataset.parquet) return;
    if (!captions && !sizes)
        place.refuse("parquet", "is given, and neither caption_strategy nor metadata_backend is parquet",
                     "set one of them to parquet, or remove the block");
    const ParquetColumns& columns = *dataset.parquet;
    const auto require = [&](std::string_view key, bool holds) {
        if (!holds) place.refuse("parquet." + std::string{key}, "is empty", "name it");
    };
    require("path", !columns.path.empty());
    require("filename_column", !columns.filename_column.empty());
    require("width_column", !sizes || !columns.width_column.empty());
    require("height_column", !sizes || !columns.height_column.empty());
    const auto has_empty = [](const std::vector<std::string>& names) {
        return std::any_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); });
    };
    require("caption_column", !has_empty(columns.caption_column));
    require("fallback_caption_column", !has_empty(columns.fallback_caption_column));
    if (captions && columns.caption_column.empty())
        place.refuse("parquet.caption_column", "is missing, and caption_strategy is parquet",
                     "name the column that has the captions");
}

inline void check_schedule(const ImageDataset& dataset, const Place& place) {
    if (dataset.end_epoch > 0 && dataset.end_epoch < dataset.start_epoch)
        place.refuse("end_epoch", "is before start_epoch", "use a later end, or 0 for none");
    if (dataset.end_step > 0 && dataset.end_step < dataset.start_step)
        place.refuse("end_step", "is before start_step", "use a later end, or 0 for none");
    if (dataset.probability == 0)
        place.refuse("probability", "is 0", "use a number above 0 and up to 1, or set disabled to true");
    if (!dataset.is_eval()) return;
    const auto refuse = [&](std::string_view key, bool is_given) {
        if (is_given)
            place.refuse(key, "is given, and dataset_type is eval: each picture is seen once at each evaluation",
                         "remove the key");
    };
    refuse("repeats", dataset.repeats > 0);
    refuse("probability", dataset.probability != 1);
    refuse("start_epoch", dataset.start_epoch > 1);
    refuse("end_epoch", dataset.end_epoch > 0);
    refuse("start_step", dataset.start_step > 1);
    refuse("end_step", dataset.end_step > 0);
    refuse("disable_after_epoch_step", dataset.disable_after_epoch_step > 0);
    refuse("is_regularisation_data", dataset.is_regularisation_data);
}

inline void check_folder(const ImageDataset& dataset, const Place& place) {
    if (dataset.type == StoreType::aws && !dataset.instance_data_dir.empty())
        place.refuse("instance_data_dir", "is given, and type is aws", "the folder in the bucket is aws_data_prefix");
    if (dataset.type == StoreType::csv && !dataset.instance_data_dir.empty())
        place.refuse("instance_data_dir", "is given, and type is csv",
                     "the folder of what was fetched is csv_cache_dir");
    if (dataset.type == StoreType::local && dataset.instance_data_dir.empty())
        place.refuse("instance_data_dir", "is missing", "name the folder of the pictures");
    if (dataset.shards.empty()) return;
    if (dataset.type == StoreType::csv)
        place.refuse("shards", "is given, and type is csv", "set type to local or aws, or remove the key");
    if (dataset.delete_problematic_images)
        place.refuse("delete_problematic_images", "is true, and nothing can be deleted in tar files",
                     "remove the key: what cannot be decoded is skipped and named");
}

/// Names pair, and each picture has one partner in each set.
inline void check_conditioning_data(const ImageDataset& dataset, const Place& place) {
    if (!dataset.conditioning_data.empty() && dataset.type == StoreType::csv)
        place.refuse("conditioning_data", "is given, and type is csv: addresses in a list have no names to pair by",
                     "put the pictures into a folder, and set type to local");
    for (auto id = dataset.conditioning_data.begin(); id != dataset.conditioning_data.end(); ++id)
        if (std::find(dataset.conditioning_data.begin(), id, *id) != id)
            place.refuse("conditioning_data", "names '" + *id + "' twice", "name it once");
}

/// Pictures at the addresses of a list.
inline void check_url_list(const ImageDataset& dataset, const Place& place) {
    const UrlList& list = dataset.csv;
    const bool captions = dataset.caption_strategy == CaptionStrategy::csv;
    if (dataset.type != StoreType::csv) {
        if (captions)
            place.refuse("caption_strategy", "is csv, and type is not",
                         "set type to csv, or use the block parquet, whose table may be a .csv");
        for (const auto& [key, is_given] :
             {std::pair{"csv_file", !list.file.empty()}, std::pair{"csv_caption_column", !list.caption_column.empty()},
              std::pair{"csv_cache_dir", !list.cache_dir.empty()}})
            if (is_given) place.refuse(key, "is given, and type is not csv", "set type to csv, or remove the key");
        return;
    }
    if (list.file.empty()) place.refuse("csv_file", "is missing, and type is csv", "name the list of addresses");
    if (list.cache_dir.empty())
        place.refuse("csv_cache_dir", "is missing, and type is csv", "name a folder for what is fetched");
    if (list.url_column.empty()) place.refuse("csv_url_column", "is empty", "name the column of the addresses");
    if (captions && list.caption_column.empty())
        place.refuse("csv_caption_column", "is missing, and caption_strategy is csv",
                     "name the column that has the captions");
    if (!captions && dataset.caption_strategy != CaptionStrategy::instanceprompt && !dataset.only_instance_prompt)
        place.refuse("caption_strategy", "is neither csv nor instanceprompt, and type is csv",
                     "set it to csv, and name the column with csv_caption_column");
    if (dataset.parquet) place.refuse("parquet", "is given, and type is csv", "name the columns with the csv_ keys");
    if (dataset.delete_problematic_images)
        place.refuse("delete_problematic_images", "is true, and what is deleted would be fetched again",
                     "remove the key: what cannot be decoded is skipped and named");
}

inline void check_caching(const ImageDataset& dataset, const Place& place) {
    if (dataset.delete_problematic_images && !dataset.scan_for_errors)
        place.refuse("delete_problematic_images", "is true, and scan_for_errors is not: nothing is deleted unread",
                     "set scan_for_errors to true as well, or remove the key");
    if (dataset.vae_cache_disable && dataset.vae_cache_ondemand)
        place.refuse("vae_cache_disable", "and vae_cache_ondemand are both true, and only one of them writes latents",
                     "keep one of them");
}

/// What is wrong with one subject does not hide what is wrong with another.
inline void check_image(const ImageDataset& dataset, const Place& place) {
    Problems problems;
    problems.during([&] { check_store(dataset.type, dataset.s3, place); });
    for (const auto check : {check_folder, check_url_list, check_conditioning_data, check_units, check_aspect_ratios,
                             check_crop, check_captions, check_schedule, check_caching})
        problems.during([&] { check(dataset, place); });
    problems.finish();
}

inline void check_conditioning(const ImageDataset& dataset, const Place& place) {
    Problems problems;
    problems.during([&] { check_store(dataset.type, dataset.s3, place); });
    problems.during([&] { check_folder(dataset, place); });
    problems.finish();
}

/// The folder of a cache entry of type local must have a name, where `is_required` says so.
inline void check_cache(StoreType type, const S3Settings& s3, const std::filesystem::path& cache_dir, bool is_required,
                        const Place& place) {
    check_store(type, s3, place);
    if (type == StoreType::local && is_required && cache_dir.empty())
        place.refuse("cache_dir", "is empty", "name a folder");
    if (type == StoreType::aws && cache_dir.is_absolute())
        place.refuse("cache_dir", "is an absolute path, and type is aws",
                     "name a folder of the bucket, or set type to local");
}

}  // namespace strata::config::detail
