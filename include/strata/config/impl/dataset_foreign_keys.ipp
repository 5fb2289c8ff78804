#pragma once
// strata/config/impl/dataset_foreign_keys.ipp - what dataset lists of other trainers have and strata does not act on.

#include <initializer_list>
#include <string_view>
#include <vector>

#include <strata/config/schema.hpp>

namespace strata::config::detail {

inline constexpr std::string_view no_media = "strata trains on still pictures; video and audio are out of scope";
inline constexpr std::string_view no_hub =
    "download the data set and name its folder; its Parquet files can be the table `parquet`";
inline constexpr std::string_view no_webshart =
    "name the folder or bucket of the tar files with type local or aws, and the files with `shards`";
inline constexpr std::string_view no_conditioning_made =
    "make the conditioning pictures beforehand, and name their data set with `conditioning_data`";
inline constexpr std::string_view no_conditioning_embeds =
    "what is made of a conditioning picture is kept with that of the picture it belongs to";
inline constexpr std::string_view no_grounding = "strata trains on pictures as a whole, without boxes in them";
inline constexpr std::string_view no_memory_store =
    "latents are kept in memory up to cache_memory_mib of the trainer's configuration";

inline void add_unsupported(std::vector<UnsupportedKey>& keys, std::string_view why,
                            std::initializer_list<std::string_view> names, bool false_is_fine = false) {
    for (const std::string_view name : names) keys.push_back({name, why, false_is_fine});
}

/// Keys that change how fast other trainers work, in entries of every kind.
inline std::vector<IdleKey> shared_idle_keys() {
    std::vector<IdleKey> keys;
    for (const std::string_view key : {"text_encoder_batch_size", "vae_batch_size"})
        keys.push_back({key, "that of the trainer's configuration holds for all data sets"});
    for (const std::string_view key : {"write_batch_size", "read_batch_size"})
        keys.push_back(
            {key,
             "cache entries are read and written by as many threads as `threads` of the trainer's configuration says"});
    keys.push_back({"hash_filenames", "names of cache entries always follow from what they were made from"});
    return keys;
}

/// Keys of a cache entry, whose caches are never listed.
inline std::vector<IdleKey> cache_idle_keys() {
    std::vector<IdleKey> keys = shared_idle_keys();
    for (const std::string_view key : {"preserve_data_backend_cache", "skip_file_discovery"})
        keys.push_back({key, "caches are never listed: an entry's name follows from what it is made from"});
    return keys;
}

inline std::vector<IdleKey> image_idle_keys() {
    std::vector<IdleKey> keys = shared_idle_keys();
    keys.push_back({"metadata_update_interval", "what is found out about pictures is kept while it is found"});
    keys.push_back(
        {"cache_file_suffix", "what was found out about pictures follows from the data set's `id` and its keys"});
    return keys;
}

/// Keys of an entry of every kind.
inline std::vector<UnsupportedKey> shared_unsupported_keys() {
    std::vector<UnsupportedKey> keys;
    add_unsupported(keys, no_memory_store,
                    {"memory_filesystem_path", "memory_filesystem_size", "memory_filesystem_sudo"});
    return keys;
}

inline std::vector<UnsupportedKey> image_unsupported_keys() {
    std::vector<UnsupportedKey> keys = shared_unsupported_keys();
    const auto add = [&keys](std::string_view why, std::initializer_list<std::string_view> names) {
        add_unsupported(keys, why, names);
    };
    const auto add_switch = [&keys](std::string_view why, std::initializer_list<std::string_view> names) {
        add_unsupported(keys, why, names, true);
    };
    add(no_media, {"video", "audio", "s2v_datasets", "num_frames", "frame_interval"});
    add(no_hub, {"huggingface", "dataset_name", "image_column", "caption_column", "split", "revision"});
    add(no_webshart, {"webshart", "source", "metadata"});
    add(no_conditioning_made, {"conditioning"});
    add(no_conditioning_embeds,
        {"conditioning_image_embeds", "cache_dir_conditioning_image_embeds", "conditioning_image_embed_batch_size"});
    add(no_grounding, {"grounding"});
    add("only an entry with dataset_type conditioning has it", {"conditioning_type", "source_dataset_id"});
    add("for pictures the folder is `cache_dir_vae`", {"cache_dir"});
    add("damaged cache entries are named and made again by themselves", {"vae_cache_scan_behaviour"});
    add("all data sets are trained with the same noise and loss", {"slider_strength", "timestep_sampling_offset"});
    add_switch("only an entry with dataset_type text_embeds can be the default", {"default"});
    add_switch("the key is `vae_cache_disable`", {"disable_vae_cache"});
    add_switch("pictures that are too small, narrow or wide are skipped and named, and stay",
               {"delete_unwanted_images"});
    add_switch("strata has no picture classifier", {"delete_nsfw_images", "enable_nsfw_check"});
    return keys;
}

/// What a conditioning data set has from the data sets that name it, and what lists of other trainers say there all the same.
inline std::vector<IdleKey> conditioning_idle_keys() {
    std::vector<IdleKey> keys = image_idle_keys();
    const auto add = [&keys](std::string_view why, std::initializer_list<std::string_view> names) {
        for (const std::string_view name : names) keys.push_back({name, why});
    };
    add("a conditioning picture is resized and cropped as the picture that it belongs to",
        {"resolution", "resolution_type", "minimum_image_size", "maximum_image_size", "target_downsample_size",
         "minimum_aspect_ratio", "maximum_aspect_ratio", "crop", "crop_style", "crop_aspect", "crop_aspect_buckets",
         "max_upscale_threshold"});
    add("a conditioning picture is shown when the picture is that it belongs to",
        {"repeats", "probability", "max_num_samples", "start_epoch", "end_epoch", "start_step", "end_step",
         "disable_after_epoch_step", "train_batch_size", "small_buckets", "is_regularisation_data",
         "is_regularization_data"});
    add("captions come with the pictures that are trained on",
        {"caption_strategy", "instance_prompt", "prepend_instance_prompt", "only_instance_prompt",
         "disable_multiline_split", "caption_shuffle", "caption_filter_list", "text_embeds"});
    add(no_conditioning_embeds, {"cache_dir_vae", "image_embeds", "vae_cache_ondemand", "vae_cache_disable",
                                 "vae_cache_clear_each_epoch", "compress_disk_cache"});
    add("sizes are read from the headers of the pictures", {"metadata_backend", "parquet"});
    return keys;
}

inline std::vector<UnsupportedKey> conditioning_unsupported_keys() {
    std::vector<UnsupportedKey> keys = image_unsupported_keys();
    std::erase_if(keys, [](const UnsupportedKey& one) {
        return one.key == "conditioning_type" || one.key == "source_dataset_id";
    });
    add_unsupported(keys, "conditioning pictures have none of their own: name all data sets in that of the pictures",
                    {"conditioning_data"});
    add_unsupported(keys, "what cannot be decoded is skipped and named, and stays", {"delete_problematic_images"},
                    true);
    return keys;
}

inline std::vector<UnsupportedKey> parquet_unsupported_keys() {
    return {{"aspect_ratio_column", "aspect ratios follow from `width_column` and `height_column`"},
            {"num_frames_column", no_media},
            {"fps_column", no_media},
            {"bbox_column", no_grounding}};
}

inline std::vector<UnsupportedKey> text_embeds_unsupported_keys() {
    std::vector<UnsupportedKey> keys = shared_unsupported_keys();
    add_unsupported(keys, "captions are embedded before the first step", {"text_cache_ondemand", "text_cache_disable"},
                    true);
    add_unsupported(keys, "captions come from the picture data sets", {"instance_data_dir"});
    return keys;
}

inline std::vector<UnsupportedKey> image_embeds_unsupported_keys() {
    std::vector<UnsupportedKey> keys = shared_unsupported_keys();
    add_unsupported(keys, "only an entry with dataset_type text_embeds can be the default", {"default"}, true);
    add_unsupported(keys, "the key is `cache_dir`, or `cache_dir_vae` of the picture data set", {"cache_dir_vae"});
    add_unsupported(keys, "pictures are named by the picture data sets", {"instance_data_dir"});
    return keys;
}

}  // namespace strata::config::detail
