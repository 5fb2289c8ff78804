#pragma once
// strata/config/impl/dataset.ipp - the keys of the entries of multidatabackend.json.

#include <algorithm>
#include <array>
#include <cmath>

#include <strata/config/dataset.hpp>
#include <strata/config/impl/dataset_foreign_keys.ipp>
#include <strata/config/impl/key.ipp>

namespace strata::config {

namespace detail {

inline std::vector<Choice<StoreType>> store_types() {
    return {{"local", StoreType::local},
            {"aws", StoreType::aws},
            {"memory", StoreType::local, no_memory_store},
            {"csv", StoreType::local, no_media},
            {"huggingface", StoreType::local, no_media},
            {"webshart", StoreType::local, no_media}};
}

inline std::vector<Choice<DatasetType>> dataset_types() {
    return {{"image", DatasetType::image},
            {"eval", DatasetType::eval},
            {"text_embeds", DatasetType::text_embeds},
            {"image_embeds", DatasetType::image_embeds},
            {"video", DatasetType::image, no_media},
            {"audio", DatasetType::image, no_media},
            {"conditioning", DatasetType::image, no_conditioning},
            {"conditioning_image_embeds", DatasetType::image, no_conditioning},
            {"caption", DatasetType::image, "captions come with their pictures"}};
}

inline std::vector<Choice<ResolutionType>> resolution_types() {
    return {
        {"pixel", ResolutionType::pixel}, {"area", ResolutionType::area}, {"pixel_area", ResolutionType::pixel_area}};
}

inline std::vector<Choice<CaptionStrategy>> caption_strategies() {
    return {{"textfile", CaptionStrategy::textfile},
            {"filename", CaptionStrategy::filename},
            {"instanceprompt", CaptionStrategy::instanceprompt},
            {"parquet", CaptionStrategy::parquet},
            {"json", CaptionStrategy::json},
            {"csv", CaptionStrategy::textfile, no_media},
            {"huggingface", CaptionStrategy::textfile, no_media},
            {"webshart", CaptionStrategy::textfile, no_media}};
}

/// [1.0, 0.75] or [{"aspect": 1.0, "weight": 0.6}, ...]; weights are all given or none.
inline std::vector<CropAspectBucket> read_crop_aspect_buckets(const Value& value) {
    static const Schema<CropAspectBucket> keys = [] {
        Schema<CropAspectBucket> s;
        s.number("aspect", &CropAspectBucket::aspect, {0.01, 100}, "Width / height").required();
        s.number("weight", &CropAspectBucket::weight, {0, 1}, "Probability of being drawn").required();
        return s;
    }();
    std::vector<CropAspectBucket> buckets;
    const std::vector<Value> elements = value.elements();
    double sum = 0;
    for (const Value& element : elements) {
        if (element.is_object() != elements.front().is_object())
            value.refuse(Errc::bad_value, "has both plain numbers and objects with a weight",
                         "give all buckets a weight, or none");
        if (element.is_object()) {
            buckets.push_back(keys.read(element.json(), element.source(), element.key() + "."));
        } else {
            check_range(element, element.number(), {0.01, 100});
            buckets.push_back({element.number(), 1 / static_cast<double>(elements.size())});
        }
        sum += buckets.back().weight;
    }
    if (!buckets.empty() && std::abs(sum - 1) > 1e-6)
        value.refuse(Errc::bad_value, "has weights whose sum is " + shown(sum), "use weights whose sum is 1");
    return buckets;
}

/// "vae aspect", "vae,aspect", ["vae", "aspect"] or "".
inline SkipDiscovery read_skip_discovery(const Value& value) {
    constexpr std::array<std::pair<std::string_view, bool SkipDiscovery::*>, 4> steps{
        {{"vae", &SkipDiscovery::vae},
         {"aspect", &SkipDiscovery::aspect},
         {"metadata", &SkipDiscovery::metadata},
         {"text", &SkipDiscovery::text}}};
    SkipDiscovery skip;
    const auto take = [&](std::string_view word) {
        for (const auto& [name, member] : steps) {
            if (name != word) continue;
            skip.*member = true;
            return;
        }
        value.refuse(Errc::bad_value, "is " + value.shown() + ", and not all of that are steps of a start",
                     "use any of `vae`, `aspect`, `metadata`, `text`, with blanks between");
    };
    if (value.json().is_boolean() && !value.flag()) return skip;  // as if it were empty
    constexpr std::string_view between = " ,\t\n";
    for (const std::string& text : value.texts())
        for (std::size_t begin = text.find_first_not_of(between); begin != std::string::npos;) {
            const std::size_t end = std::min(text.find_first_of(between, begin), text.size());
            take(std::string_view{text}.substr(begin, end - begin));
            begin = text.find_first_not_of(between, end);
        }
    return skip;
}

}  // namespace detail

STRATA_INLINE const Schema<S3Settings>& s3_schema() {
    using S = S3Settings;
    static const Schema<S> schema = [] {
        Schema<S> s;
        s.text("aws_bucket_name", &S::bucket, "Of `aws`: the bucket's name alone; required there");
        s.text("aws_region_name", &S::region,
               "Of `aws`: as in `eu-central-1`; without it `AWS_REGION`, `AWS_DEFAULT_REGION`, `us-east-1`");
        s.text("aws_endpoint_url", &S::endpoint_url,
               "Of `aws`: the server; without it `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, Amazon's");
        s.secret("aws_access_key_id", &S::access_key_id,
                 "Of `aws`: best `{env:NAME}`; without the keys [the places of storage.md](storage.md#s3)");
        s.secret("aws_secret_access_key", &S::secret_access_key, "Of `aws`: best `{env:NAME}`; goes with the key's id");
        s.secret("aws_session_token", &S::session_token, "Of `aws`: of keys that expire");
        s.text("aws_data_prefix", &S::data_prefix, "Of `aws`: the folder, what all names have in front");
        s.integer("aws_max_pool_connections", &S::max_pool_connections, {1, 10000}, "Of `aws`: requests at once");
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<ParquetColumns>& parquet_schema() {
    using P = ParquetColumns;
    static const Schema<P> schema = [] {
        Schema<P> s;
        s.text("path", &P::path,
               "The table, `.parquet` or `.jsonl`: a file, with `aws` an object below `aws_data_prefix`")
            .required();
        s.text("filename_column", &P::filename_column, "Names of pictures as they are below the data set's folder")
            .required();
        s.texts(
            "caption_column", &P::caption_column,
            "Captions; of several columns with text one is drawn for each visit; required by `caption_strategy` `parquet`");
        s.texts("fallback_caption_column", &P::fallback_caption_column, "Captions where `caption_column` is empty");
        s.text("width_column", &P::width_column, "Widths in pixels, for `metadata_backend` `parquet`");
        s.text("height_column", &P::height_column, "Heights in pixels, for `metadata_backend` `parquet`");
        s.flag("identifier_includes_extension", &P::identifier_includes_extension,
               "The names have their extension; `false` adds `.png`");
        s.unsupported(detail::parquet_unsupported_keys());
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<CaptionShuffle>& caption_shuffle_schema() {
    using C = CaptionShuffle;
    static const Schema<C> schema = [] {
        Schema<C> s;
        s.flag("enable", &C::enable, "Shuffle");
        s.integer("count", &C::count, {1, 1000}, "Orders made of each caption; one is drawn for each visit");
        s.integer("seed", &C::seed, {0, 9e15}, "Start of the orders; null is the trainer's `seed`");
        s.choice<CaptionSeparator>("split_on", &C::split_on,
                                   {{"comma", CaptionSeparator::comma},
                                    {"space", CaptionSeparator::space},
                                    {"period", CaptionSeparator::period}},
                                   "What stands between tags");
        s.integer("position_start", &C::position_start, {0, 1000},
                  "Tags in front that stay; captions with fewer than this + 2 tags are not shuffled");
        s.flag("include_original", &C::include_original, "The caption as it is counts as one more order");
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<ImageDataset>& image_schema() {
    using D = ImageDataset;
    static const Schema<D> schema = [] {
        Schema<D> s;
        s.text("id", &D::id, "Unique name; appears in messages").required();
        s.choice("type", &D::type, detail::store_types(), "Where the pictures are: a folder, or an S3 bucket");
        s.choice("dataset_type", &D::dataset_type, detail::dataset_types(),
                 "What the entry is; `eval` is not trained on");
        s.flag("disabled", &D::disabled, "Leave the entry out").alias("disable");
        s.text("instance_data_dir", &D::instance_data_dir,
               "Of `local`: folder of the pictures, with all folders below it; required there");
        s.beside(&D::s3, s3_schema());
        s.text("cache_dir_vae", &D::cache_dir_vae,
               "Folder of the cached latents; with `aws` in the bucket, beside `aws_data_prefix`");
        s.text("text_embeds", &D::text_embeds,
               "`id` of the entry that keeps the embedded captions; without it the only or default one");
        s.text("image_embeds", &D::image_embeds,
               "`id` of the entry whose store keeps the latents; without it the data set's own");
        s.number("resolution", &D::resolution, {0.01, 16384},
                 "Size of a training picture, in the unit of `resolution_type`");
        s.choice("resolution_type", &D::resolution_type, detail::resolution_types(),
                 "Unit: pixels of the shorter edge, megapixels, or pixels of the edge of a square of the same area");
        s.number("minimum_image_size", &D::minimum_image_size, {0, 16384},
                 "Smaller pictures are skipped and named; in the unit of `resolution_type`");
        s.number("maximum_image_size", &D::maximum_image_size, {0, 32768},
                 "Larger pictures are resized to `target_downsample_size` before they are cropped; 0 = never");
        s.number("target_downsample_size", &D::target_downsample_size, {0, 32768},
                 "See `maximum_image_size`; at most that, and without effect where that is 0");
        s.number("minimum_aspect_ratio", &D::minimum_aspect_ratio, {0.01, 1},
                 "Pictures with a smaller width / height are skipped and named");
        s.number("maximum_aspect_ratio", &D::maximum_aspect_ratio, {1, 100},
                 "Pictures with a larger width / height are skipped and named");
        s.flag("crop", &D::crop,
               "Crop to the shape `crop_aspect` names; without it only what exceeds the bucket is cut, evenly, and the "
               "other keys of cropping have no say");
        s.choice<CropStyle>(
            "crop_style", &D::crop_style,
            {{"center", CropStyle::center},
             {"centre", CropStyle::center},
             {"corner", CropStyle::corner},
             {"random", CropStyle::random},
             {"face", CropStyle::center, "strata has no face detector"}},
            "Part of the picture that is kept: the middle, the upper left, or another one in each epoch");
        s.choice<CropAspect>("crop_aspect", &D::crop_aspect,
                             {{"square", CropAspect::square},
                              {"preserve", CropAspect::preserve},
                              {"closest", CropAspect::closest},
                              {"random", CropAspect::random}},
                             "One square bucket, the bucket nearest in aspect ratio, the nearest of "
                             "`crop_aspect_buckets`, or another one of them in each epoch");
        s.custom("crop_aspect_buckets", "list of numbers, or of `{\"aspect\": number, \"weight\": number}`", "[]",
                 "Shapes of `closest` and `random`, width / height; weights are probabilities and their sum is 1",
                 [](D& dataset, const Value& value) {
                     dataset.crop_aspect_buckets = detail::read_crop_aspect_buckets(value);
                 });
        s.number("max_upscale_threshold", &D::max_upscale_threshold, {0, 1},
                 "Of `closest` and `random`: leave out shapes that enlarge a picture's edge by more than this share; "
                 "null = any");
        s.integer("repeats", &D::repeats, {0, 1e6}, "Additional visits of each picture in an epoch; 0 = each once");
        s.number("probability", &D::probability, {0, 1},
                 "Share of its batches that an epoch shows, above 0: 0.25 shows each picture once in four epochs");
        s.integer("max_num_samples", &D::max_num_samples, {0, 1e12},
                  "Use so many pictures, always the same for the same `id`; 0 = all");
        s.integer("start_epoch", &D::start_epoch, {0, 1e12},
                  "First epoch the data set takes part in; 1 = from the start");
        s.integer("end_epoch", &D::end_epoch, {0, 1e12}, "Last epoch it takes part in; 0 = no end");
        s.integer("start_step", &D::start_step, {0, 1e12},
                  "First optimizer step it takes part in; 0 and 1 = from the start");
        s.integer("end_step", &D::end_step, {0, 1e12}, "Last optimizer step it takes part in; 0 = no end");
        s.flag("is_regularisation_data", &D::is_regularisation_data,
               "Pictures that keep the model as it was: the target is what the model predicts without its adapter")
            .alias("is_regularization_data");
        s.choice("caption_strategy", &D::caption_strategy, detail::caption_strategies(),
                 "Caption: a line of the `.txt` beside the picture, its file name, `instance_prompt`, a "
                 "column of the table `parquet`, or `caption` in the `.json` beside the picture");
        s.text("instance_prompt", &D::instance_prompt,
               "The caption of every picture with `instanceprompt`, and text of the next two keys");
        s.flag("prepend_instance_prompt", &D::prepend_instance_prompt,
               "Put `instance_prompt` in front of each caption");
        s.flag("only_instance_prompt", &D::only_instance_prompt, "Use `instance_prompt` instead of each caption");
        s.flag(
            "disable_multiline_split", &D::disable_multiline_split,
            "Of `textfile`: all lines of a caption file are one caption; without it each is one, and one is drawn for "
            "each visit");
        s.object("caption_shuffle", &D::caption_shuffle, caption_shuffle_schema(),
                 "Captions with their tags in other orders; see below");
        s.choice<MetadataBackend>("metadata_backend", &D::metadata_backend,
                                  {{"discovery", MetadataBackend::discovery},
                                   {"json", MetadataBackend::discovery},
                                   {"parquet", MetadataBackend::parquet},
                                   {"csv", MetadataBackend::discovery, detail::no_media},
                                   {"huggingface", MetadataBackend::discovery, detail::no_media},
                                   {"webshart", MetadataBackend::discovery, detail::no_media}},
                                  "How picture sizes are found: from the pictures' headers (`json` is an old name for "
                                  "it), or from the table `parquet`");
        s.object("parquet", &D::parquet, parquet_schema(), "A table of captions and sizes; see below");
        s.flag("preserve_data_backend_cache", &D::preserve_data_backend_cache,
               "Use the listing of an earlier start again; new pictures are not seen then");
        s.custom(
            "skip_file_discovery", "any of `vae`, `aspect`, `metadata`, `text`, with blanks or commas between", "\"\"",
            "Leave these steps of a start to what an earlier one has written: looking for latents, buckets, "
            "picture sizes, embedded captions",
            [](D& dataset, const Value& value) { dataset.skip_file_discovery = detail::read_skip_discovery(value); });
        s.flag("vae_cache_ondemand", &D::vae_cache_ondemand, "Make latents at a picture's first visit and keep them");
        s.flag("vae_cache_disable", &D::vae_cache_disable, "Make latents at each visit and keep none");
        s.flag("vae_cache_clear_each_epoch", &D::vae_cache_clear_each_epoch,
               "Make latents anew for each epoch; random crops need it, or `vae_cache_disable`");
        s.flag("compress_disk_cache", &D::compress_disk_cache,
               "Keep the latents inside gzip; without it as `image_embeds`, else as `config.json` says");
        s.flag("scan_for_errors", &D::scan_for_errors, "Decode every picture before the first step");
        s.flag("delete_problematic_images", &D::delete_problematic_images,
               "**Deletes** pictures that cannot be decoded; without it they are skipped and named");
        s.idle(detail::image_idle_keys());
        s.unsupported(detail::image_unsupported_keys());
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<TextEmbeds>& text_embeds_schema() {
    using T = TextEmbeds;
    static const Schema<T> schema = [] {
        Schema<T> s;
        s.text("id", &T::id, "Unique name, for `text_embeds` of other entries").required();
        s.choice("type", &T::type, detail::store_types(), "Where the cache is: a folder, or an S3 bucket");
        s.choice("dataset_type", &T::dataset_type, detail::dataset_types(), "What the entry is; `text_embeds` here")
            .required();
        s.flag("disabled", &T::disabled, "Leave the entry out").alias("disable");
        s.flag("default", &T::is_default, "Used by entries without `text_embeds`; needed when there are several");
        s.text("cache_dir", &T::cache_dir,
               "Folder of the embedded captions; required with `local`, with `aws` below `aws_data_prefix`");
        s.flag("compress_disk_cache", &T::compress_disk_cache,
               "Keep entries inside gzip; without it as `config.json` says");
        s.beside(&T::s3, s3_schema());
        s.idle(detail::cache_idle_keys());
        s.unsupported(detail::text_embeds_unsupported_keys());
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<ImageEmbeds>& image_embeds_schema() {
    using I = ImageEmbeds;
    static const Schema<I> schema = [] {
        Schema<I> s;
        s.text("id", &I::id, "Unique name, for `image_embeds` of other entries").required();
        s.choice("type", &I::type, detail::store_types(), "Where the cache is: a folder, or an S3 bucket");
        s.choice("dataset_type", &I::dataset_type, detail::dataset_types(), "What the entry is; `image_embeds` here")
            .required();
        s.flag("disabled", &I::disabled, "Leave the entry out").alias("disable");
        s.text(
            "cache_dir", &I::cache_dir,
            "Folder of the latents, with `aws` below `aws_data_prefix`; without it `cache_dir_vae` of the data set names it");
        s.flag("compress_disk_cache", &I::compress_disk_cache,
               "Keep entries inside gzip; without it as `config.json` says");
        s.beside(&I::s3, s3_schema());
        s.idle(detail::cache_idle_keys());
        s.unsupported(detail::image_embeds_unsupported_keys());
        return s;
    }();
    return schema;
}

}  // namespace strata::config
