#pragma once
// strata/config/impl/dataset.ipp - the keys of the entries of multidatabackend.json.

#include <algorithm>
#include <array>
#include <cmath>

#include <strata/config/dataset.hpp>
#include <strata/config/impl/dataset_foreign_keys.ipp>
#include <strata/config/impl/dataset_parts.ipp>
#include <strata/config/impl/key.ipp>

namespace strata::config {

STRATA_INLINE const Schema<ImageDataset>& image_schema() {
    using D = ImageDataset;
    static const Schema<D> schema = [] {
        Schema<D> s;
        s.text("id", &D::id, "Unique name; appears in messages").required();
        s.choice("type", &D::type, detail::picture_store_types(),
                 "Where the pictures are: a folder, an S3 bucket, or web addresses in a list");
        s.choice("dataset_type", &D::dataset_type, detail::dataset_types(),
                 "What the entry is; `eval` is not trained on");
        s.flag("disabled", &D::disabled, "Leave the entry out").alias("disable");
        s.text("instance_data_dir", &D::instance_data_dir,
               "Of `local`: folder of the pictures, with all folders below it; required there");
        s.beside(&D::s3, s3_schema());
        s.beside(&D::csv, url_list_schema());
        s.text(
            "shards", &D::shards,
            "Names of tar files below the folder whose members are the pictures, with `*` for any text and `{000..127}` for "
            "numbers; without it pictures are files");
        s.text("cache_dir_vae", &D::cache_dir_vae,
               "Folder of the cached latents; with `aws` in the bucket, beside `aws_data_prefix`");
        s.text("text_embeds", &D::text_embeds,
               "`id` of the entry that keeps the embedded captions; without it the only or default one");
        s.text("image_embeds", &D::image_embeds,
               "`id` of the entry whose store keeps the latents; without it the data set's own");
        s.texts("conditioning_data", &D::conditioning_data,
                "`id` of the entry, or of several, that has a conditioning picture of the same name for each picture");
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
        s.number("minimum_aspect_ratio", &D::minimum_aspect_ratio, {0.01, 100},
                 "Pictures with a smaller width / height are skipped and named; above 1 only wide ones are left");
        s.number("maximum_aspect_ratio", &D::maximum_aspect_ratio, {0.01, 100},
                 "Pictures with a larger width / height are skipped and named; below 1 only tall ones are left");
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
        s.integer("disable_after_epoch_step", &D::disable_after_epoch_step, {0, 1e12},
                  "Of each epoch: the data set is drawn ever less, and not any more after so many of its optimizer "
                  "steps; 0 = to its end");
        s.integer("train_batch_size", &D::train_batch_size, {0, 65536},
                  "Samples of one rank in one micro-batch of this data set; 0 = as `config.json` says");
        s.choice<SmallBuckets>(
            "small_buckets", &D::small_buckets,
            {{"refuse", SmallBuckets::refuse},
             {"merge", SmallBuckets::merge},
             {"drop", SmallBuckets::drop},
             {"repeat", SmallBuckets::repeat}},
            "What becomes of a bucket with fewer samples than an effective batch: the run stops and says what helps, they "
            "go to the bucket nearest in aspect ratio, they take no part, or are repeated; null is `refuse`, or with "
            "`allow_dataset_oversubscription` `repeat`");
        s.flag("is_regularisation_data", &D::is_regularisation_data,
               "Pictures that keep the model as it was: the target is what the model predicts without its adapter")
            .alias("is_regularization_data");
        s.choice("caption_strategy", &D::caption_strategy, detail::caption_strategies(),
                 "Caption: a line of the `.txt` beside the picture, its file name, `instance_prompt`, a "
                 "column of the table `parquet`, `caption` in the `.json` beside the picture, or `csv_caption_column`");
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
        detail::add_caption_filters(s);
        s.choice<MetadataBackend>(
            "metadata_backend", &D::metadata_backend,
            {{"discovery", MetadataBackend::discovery},
             {"json", MetadataBackend::discovery},
             {"parquet", MetadataBackend::parquet},
             {"csv", MetadataBackend::discovery, "a list of addresses has no sizes; use discovery"},
             {"huggingface", MetadataBackend::discovery, detail::no_hub},
             {"webshart", MetadataBackend::discovery, detail::no_webshart}},
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

STRATA_INLINE const Schema<ImageDataset>& conditioning_schema() {
    using D = ImageDataset;
    static const Schema<D> schema = [] {
        Schema<D> s;
        s.text("id", &D::id, "Unique name, for `conditioning_data` of other entries").required();
        std::vector<Choice<StoreType>> types = detail::picture_store_types();
        for (Choice<StoreType>& type : types)
            if (type.value == StoreType::csv) type.why_not = "addresses in a list have no names to pair by";
        s.choice("type", &D::type, std::move(types), "Where the pictures are: a folder, or an S3 bucket");
        s.choice("dataset_type", &D::dataset_type, detail::dataset_types(), "What the entry is; `conditioning` here")
            .required();
        s.flag("disabled", &D::disabled, "Leave the entry out").alias("disable");
        s.choice("conditioning_type", &D::conditioning_type, detail::conditioning_types(),
                 "What the pictures are: of a ControlNet, masks, or pictures to begin with");
        s.text("source_dataset_id", &D::source_dataset_id,
               "`id` of the entry whose `conditioning_data` names this one; without it any may");
        s.text("instance_data_dir", &D::instance_data_dir,
               "Of `local`: folder of the pictures, with all folders below it; required there");
        s.beside(&D::s3, s3_schema());
        s.text("shards", &D::shards,
               "Names of tar files below the folder whose members are the pictures, as of `image`");
        s.flag("preserve_data_backend_cache", &D::preserve_data_backend_cache,
               "Use the listing of an earlier start again; new pictures are not seen then");
        s.custom(
            "skip_file_discovery", "any of `vae`, `aspect`, `metadata`, `text`, with blanks or commas between", "\"\"",
            "With `metadata` as `preserve_data_backend_cache`; the others have no say here",
            [](D& dataset, const Value& value) { dataset.skip_file_discovery = detail::read_skip_discovery(value); });
        s.flag("scan_for_errors", &D::scan_for_errors, "Decode every picture before the first step");
        s.idle(detail::conditioning_idle_keys());
        s.unsupported(detail::conditioning_unsupported_keys());
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
        detail::add_caption_filters(s);
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
