#pragma once
// tests/support/paired_sets.hpp - a list of pictures with a conditioning picture and a mask each.

#include <filesystem>

#include <strata/config/dataset_list.hpp>

namespace strata_test {

/// Data set "photos" with "hints" and "masks" beside it, each in a folder of that name; caches in "vae" and "text".
inline strata::config::DatasetList paired_sets(const std::filesystem::path& folder, double resolution) {
    using namespace strata::config;
    DatasetList all;
    ImageDataset& photos = all.images.emplace_back();
    photos.id = "photos";
    photos.instance_data_dir = folder / "photos";
    photos.cache_dir_vae = folder / "vae";
    photos.text_embeds = "text";
    photos.resolution = resolution;
    photos.caption_strategy = CaptionStrategy::filename;
    photos.conditioning_data = {"hints", "masks"};
    for (const char* id : {"hints", "masks"}) {
        ImageDataset& set = all.conditioning.emplace_back();
        set.id = id;
        set.dataset_type = DatasetType::conditioning;
        set.instance_data_dir = folder / id;
    }
    all.conditioning[1].conditioning_type = ConditioningType::mask;
    TextEmbeds& text = all.text_embeds.emplace_back();
    text.id = "text";
    text.cache_dir = folder / "text";
    return all;
}

}  // namespace strata_test
