#pragma once
// strata/config/impl/dataset_list.ipp - the keys of multidatabackend.json and what must hold between them.

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include <strata/config/dataset_list.hpp>
#include <strata/config/impl/schema.ipp>

namespace strata::config {

namespace detail {

inline constexpr std::string_view no_s3 = "this version reads local folders only";
inline constexpr std::string_view no_media = "strata trains on still pictures; video, audio and web lists are out of scope";
inline constexpr std::string_view pictures_only = "pictures and their captions are what this version reads";

inline const std::vector<Choice<StoreType>>& store_types() {
    static const std::vector<Choice<StoreType>> types{
        {"local", StoreType::local},       {"aws", StoreType::local, no_s3},
        {"memory", StoreType::local, no_s3}, {"csv", StoreType::local, no_media},
        {"huggingface", StoreType::local, no_media}, {"webshart", StoreType::local, no_media}};
    return types;
}

inline const std::vector<Choice<DatasetType>>& dataset_types() {
    static const std::vector<Choice<DatasetType>> types = [] {
        std::vector<Choice<DatasetType>> all{{"image", DatasetType::image}, {"text_embeds", DatasetType::text_embeds}};
        for (const char* other : {"video", "audio"}) all.push_back({other, DatasetType::image, no_media});
        for (const char* other : {"image_embeds", "conditioning", "conditioning_image_embeds", "eval", "caption"})
            all.push_back({other, DatasetType::image, pictures_only});
        return all;
    }();
    return types;
}

/// Keys that an entry of any kind may carry elsewhere.
inline std::vector<UnsupportedKey> shared_unsupported() {
    std::vector<UnsupportedKey> keys;
    for (const char* key : {"aws_bucket_name", "aws_region_name", "aws_endpoint_url", "aws_access_key_id",
                            "aws_secret_access_key", "aws_session_token", "aws_data_prefix", "aws_max_pool_connections"})
        keys.push_back({key, no_s3});
    for (const char* key : {"write_batch_size", "read_batch_size", "text_encoder_batch_size", "vae_batch_size"})
        keys.push_back({key, "caches are written one entry at a time by as many threads as there are cores"});
    for (const char* key : {"preserve_data_backend_cache", "skip_file_discovery"})
        keys.push_back({key, "every start lists the folder; cached entries are found by content and used again"});
    return keys;
}

}  // namespace detail

STRATA_INLINE const Schema<ImageDataset>& image_schema() {
    using D = ImageDataset;
    static const Schema<D> schema = [] {
        Schema<D> s;
        s.text("id", &D::id, "Unique name; appears in messages").required();
        s.choice("type", &D::type, detail::store_types(), "Where the pictures and caches are");
        s.choice("dataset_type", &D::dataset_type, detail::dataset_types(), "What the entry is");
        s.flag("disabled", &D::disabled, "Leave the entry out").alias("disable");
        s.text("instance_data_dir", &D::instance_data_dir, "Folder of the pictures, with all folders below it").required();
        s.text("cache_dir_vae", &D::cache_dir_vae, "Folder of the cached latents").required();
        s.text("text_embeds", &D::text_embeds,
               "`id` of the entry that keeps the embedded captions; without it the only or default one");
        s.number("resolution", &D::resolution, {0.01, 16384}, "Size of a training picture, in the unit of `resolution_type`");
        s.choice<ResolutionType>("resolution_type", &D::resolution_type,
                                 {{"pixel", ResolutionType::pixel},
                                  {"area", ResolutionType::area},
                                  {"pixel_area", ResolutionType::pixel_area}},
                                 "Unit: pixels of the shorter edge, megapixels, or pixels of the edge of a square of the same area");
        s.number("minimum_image_size", &D::minimum_image_size, {0, 16384},
                 "Smaller pictures are skipped and named; in the unit of `resolution_type`");
        s.number("minimum_aspect_ratio", &D::minimum_aspect_ratio, {0.01, 1},
                 "Pictures with a smaller width / height are skipped and named");
        s.number("maximum_aspect_ratio", &D::maximum_aspect_ratio, {1, 100},
                 "Pictures with a larger width / height are skipped and named");
        s.flag("crop", &D::crop, "Crop to the shape `crop_aspect` names; without it only what exceeds the bucket is cut");
        s.choice<CropStyle>("crop_style", &D::crop_style,
                            {{"center", CropStyle::center},
                             {"centre", CropStyle::center},
                             {"random", CropStyle::center, "latents are cached once, so the crop is the same at every visit"},
                             {"corner", CropStyle::center, "only the middle of a picture is used"},
                             {"face", CropStyle::center, "strata has no face detector"}},
                            "Which part of the picture is kept");
        s.choice<CropAspect>("crop_aspect", &D::crop_aspect,
                             {{"square", CropAspect::square},
                              {"preserve", CropAspect::preserve},
                              {"closest", CropAspect::preserve, "the list of buckets follows from the resolution"},
                              {"random", CropAspect::preserve, "latents are cached once, in one shape"}},
                             "With `crop`: one square bucket, or the bucket nearest in aspect ratio");
        s.integer("repeats", &D::repeats, {0, 1e6}, "Additional visits of each picture in an epoch; 0 = each once");
        s.choice<CaptionStrategy>("caption_strategy", &D::caption_strategy,
                                  {{"textfile", CaptionStrategy::textfile},
                                   {"filename", CaptionStrategy::filename},
                                   {"instanceprompt", CaptionStrategy::instanceprompt},
                                   {"parquet", CaptionStrategy::textfile, "this version reads captions from text files"},
                                   {"json", CaptionStrategy::textfile, "this version reads captions from text files"},
                                   {"csv", CaptionStrategy::textfile, detail::no_media},
                                   {"huggingface", CaptionStrategy::textfile, detail::no_media},
                                   {"webshart", CaptionStrategy::textfile, detail::no_media}},
                                  "Caption: first line with text in the `.txt` beside the picture, its file name, or "
                                  "`instance_prompt`");
        s.text("instance_prompt", &D::instance_prompt, "The caption of every picture with `instanceprompt`");
        s.choice<MetadataBackend>("metadata_backend", &D::metadata_backend,
                                  {{"discovery", MetadataBackend::discovery},
                                   {"json", MetadataBackend::discovery, "picture sizes are read from the pictures"},
                                   {"parquet", MetadataBackend::discovery, "picture sizes are read from the pictures"},
                                   {"csv", MetadataBackend::discovery, detail::no_media},
                                   {"huggingface", MetadataBackend::discovery, detail::no_media},
                                   {"webshart", MetadataBackend::discovery, detail::no_media}},
                                  "How picture sizes are found");
        s.unsupported(detail::shared_unsupported());
        s.unsupported({
            {"image_embeds", "the latents' cache is `cache_dir_vae` of the same entry"},
            {"conditioning_image_embeds", detail::pictures_only},
            {"conditioning_data", detail::pictures_only},
            {"conditioning_type", detail::pictures_only},
            {"cache_dir", "for pictures the folder is `cache_dir_vae`"},
            {"default", "only an entry with dataset_type text_embeds can be the default"},
            {"probability", "data sets are joined; use `repeats` to give one of them more weight"},
            {"train_batch_size", "the batch size is one for all data sets, in the trainer's configuration"},
            {"disable_after_epoch_step", "data sets take part from the first step to the last"},
            {"start_epoch", "data sets take part from the first step to the last"},
            {"end_epoch", "data sets take part from the first step to the last"},
            {"start_step", "data sets take part from the first step to the last"},
            {"end_step", "data sets take part from the first step to the last"},
            {"maximum_image_size", "pictures of any size are resized to their bucket"},
            {"target_downsample_size", "pictures of any size are resized to their bucket"},
            {"max_upscale_threshold", "use `minimum_image_size` to leave small pictures out"},
            {"crop_aspect_buckets", "the list of buckets follows from the resolution"},
            {"prepend_instance_prompt", "captions are used as they are"},
            {"only_instance_prompt", "use `\"caption_strategy\": \"instanceprompt\"`"},
            {"caption_shuffle", "captions are used as they are"},
            {"caption_filter_list", "captions are used as they are"},
            {"disable_multiline_split", "only the first line of a caption file is the caption"},
            {"parquet", "picture sizes are read from the pictures and captions from text files"},
            {"csv_file", detail::no_media},
            {"csv_caption_column", detail::no_media},
            {"csv_url_column", detail::no_media},
            {"csv_cache_dir", detail::no_media},
            {"huggingface", detail::no_media},
            {"video", detail::no_media},
            {"audio", detail::no_media},
            {"metadata_update_interval", "every start reads the headers of the pictures"},
            {"vae_cache_ondemand", "latents are cached before the first step"},
            {"vae_cache_disable", "latents are cached before the first step"},
            {"disable_vae_cache", "latents are cached before the first step"},
            {"vae_cache_clear_each_epoch", "the crop is the same at every visit, so the cache stays valid"},
            {"vae_cache_scan_behaviour", "a damaged cache entry is named and made again by itself"},
            {"scan_for_errors", "pictures that cannot be decoded are skipped and named by themselves"},
            {"delete_unwanted_images", "strata never deletes pictures"},
            {"delete_problematic_images", "strata never deletes pictures"},
            {"delete_nsfw_images", "strata never deletes pictures"},
            {"enable_nsfw_check", "strata has no picture classifier"},
            {"max_num_samples", "all pictures of the folder are used"},
            {"is_regularisation_data", "all data sets are trained alike"},
            {"is_regularization_data", "all data sets are trained alike"},
            {"slider_strength", "all data sets are trained alike"},
            {"timestep_sampling_offset", "all data sets are trained alike"},
            {"hash_filenames", "cache names always follow from the content"},
        });
        return s;
    }();
    return schema;
}

STRATA_INLINE const Schema<TextEmbeds>& text_embeds_schema() {
    using T = TextEmbeds;
    static const Schema<T> schema = [] {
        Schema<T> s;
        s.text("id", &T::id, "Unique name, for `text_embeds` of other entries").required();
        s.choice("type", &T::type, detail::store_types(), "Where the cache is");
        s.choice("dataset_type", &T::dataset_type, detail::dataset_types(), "What the entry is; `text_embeds` here").required();
        s.flag("disabled", &T::disabled, "Leave the entry out").alias("disable");
        s.flag("default", &T::is_default, "Used by entries without `text_embeds`; needed when there are several");
        s.text("cache_dir", &T::cache_dir, "Folder of the embedded captions").required();
        s.unsupported(detail::shared_unsupported());
        s.unsupported({{"caption_filter_list", "captions are used as they are"},
                       {"text_cache_ondemand", "captions are embedded before the first step"},
                       {"instance_data_dir", "captions come from the picture data sets"}});
        return s;
    }();
    return schema;
}

STRATA_INLINE const TextEmbeds& DatasetList::text_embeds_of(const ImageDataset& dataset) const {
    for (const TextEmbeds& entry : text_embeds)
        if (entry.id == dataset.text_embeds) return entry;
    throw Error{Errc::bad_reference, "data set '" + dataset.id + "' has no text_embeds entry", "add one to the list"};
}

namespace detail {

/// What must hold between the keys of one entry.
inline void check_image(const ImageDataset& dataset, const std::string& place) {
    const auto refuse = [&](std::string_view what, std::string_view fix) {
        throw Error{Errc::bad_value, place + std::string{what}, fix};
    };
    if (dataset.resolution_type == ResolutionType::area) {
        if (dataset.resolution > 20)
            refuse("resolution' is above 20, and resolution_type area counts megapixels",
                   "use 1.0 for 1024 x 1024, or set resolution_type to pixel_area");
        if (dataset.minimum_image_size > 20)
            refuse("minimum_image_size' is above 20, and resolution_type area counts megapixels",
                   "use 0.25 for 512 x 512, or set resolution_type to pixel_area");
    } else if (dataset.resolution < 8) {
        refuse("resolution' is below 8 pixels", "use pixels, or set resolution_type to area for megapixels");
    }
    if (dataset.instance_data_dir.empty()) refuse("instance_data_dir' is empty", "name the folder of the pictures");
    if (dataset.cache_dir_vae.empty()) refuse("cache_dir_vae' is empty", "name a folder for the cached latents");
    if (dataset.caption_strategy == CaptionStrategy::instanceprompt && dataset.instance_prompt.empty())
        refuse("instance_prompt' is missing, and caption_strategy is instanceprompt", "write the caption there");
}

/// Gives every image entry the id of its text_embeds entry.
inline void link_text_embeds(DatasetList& list, const std::string& file) {
    std::vector<std::string_view> ids;
    const TextEmbeds* fallback = list.text_embeds.size() == 1 ? &list.text_embeds.front() : nullptr;
    for (const TextEmbeds& entry : list.text_embeds) {
        ids.push_back(entry.id);
        if (entry.is_default) fallback = &entry;
    }
    for (ImageDataset& dataset : list.images) {
        if (dataset.text_embeds.empty() && fallback != nullptr) {
            dataset.text_embeds = fallback->id;
        } else if (dataset.text_embeds.empty()) {
            throw Error{Errc::bad_reference,
                        file + ": data set '" + dataset.id + "' has nowhere to keep embedded captions",
                        list.text_embeds.empty()
                            ? "add an entry {\"id\": \"text\", \"dataset_type\": \"text_embeds\", \"cache_dir\": ...}"
                            : "give one text_embeds entry \"default\": true, or this one \"text_embeds\": its id"};
        } else if (std::find(ids.begin(), ids.end(), dataset.text_embeds) == ids.end()) {
            const std::string_view near = nearest_name(dataset.text_embeds, ids);
            throw Error{Errc::bad_reference,
                        file + ": data set '" + dataset.id + "' links to text_embeds '" + dataset.text_embeds +
                            "', which no entry has as its id",
                        near.empty() ? "add such an entry or correct the link" : "did you mean '" + std::string{near} + "'"};
        }
    }
}

}  // namespace detail

STRATA_INLINE DatasetList load_datasets(const std::filesystem::path& path, const ImageDataset& defaults) {
    const std::string file = path.string();
    const nlohmann::json json = load_json(path);
    if (!json.is_array())
        throw Error{Errc::bad_value, file + " is not a list of data sets", "write [{\"id\": ...}, ...]"};
    DatasetList list;
    std::set<std::string> ids;
    for (std::size_t i = 0; i < json.size(); ++i) {
        const std::string place = "[" + std::to_string(i) + "].";
        const nlohmann::json& entry = json[i];
        std::string id;
        if (entry.is_object() && entry.value("dataset_type", nlohmann::json{}) == "text_embeds") {
            TextEmbeds embeds = text_embeds_schema().read(entry, file, place);
            if (embeds.cache_dir.empty())
                throw Error{Errc::bad_value, file + ": key '" + place + "cache_dir' is empty", "name a folder"};
            id = embeds.id;
            if (!embeds.disabled) list.text_embeds.push_back(std::move(embeds));
        } else {
            ImageDataset dataset = image_schema().read(entry, file, place, defaults);
            detail::check_image(dataset, file + ": key '" + place);
            id = dataset.id;
            if (!dataset.disabled) list.images.push_back(std::move(dataset));
        }
        if (!ids.insert(id).second)
            throw Error{Errc::bad_value, file + ": key '" + place + "id' is '" + id + "', which another entry has",
                        "give every entry an id of its own"};
    }
    if (std::count_if(list.text_embeds.begin(), list.text_embeds.end(), [](const auto& e) { return e.is_default; }) > 1)
        throw Error{Errc::bad_value, file + ": two text_embeds entries are the default", "keep \"default\": true in one"};
    if (list.images.empty())
        throw Error{Errc::bad_value, file + " has no enabled data set with pictures",
                    "add an entry with dataset_type image"};
    detail::link_text_embeds(list, file);
    return list;
}

}  // namespace strata::config
