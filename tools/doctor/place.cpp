#include "place.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include <strata/config/any_config.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/config/trainer_config.hpp>
#include <strata/core/environment.hpp>
#include <strata/core/error.hpp>
#include <strata/core/text.hpp>

#include "../train/train_settings.hpp"

namespace strata::tools::doctor {

namespace {

constexpr std::array<std::string_view, 5> purposes{"folder", "output", "offload", "cache", "data"};

BucketPlace bucket_of(const config::S3Settings& settings, bool is_written) {
    BucketPlace place;
    place.options.bucket = settings.bucket;
    place.options.region = settings.region;
    place.options.endpoint_url = settings.endpoint_url;
    place.options.access_key_id = settings.access_key_id;
    place.options.secret_access_key = settings.secret_access_key;
    place.options.session_token = settings.session_token;
    place.options.data_prefix = settings.data_prefix;
    place.name = "s3://" + settings.bucket + "/" + settings.data_prefix;
    place.is_written = is_written;
    return place;
}

void add_cache(const config::CachePlace& cache, Places& places) {
    if (cache.type == config::StoreType::aws)
        places.add(bucket_of(cache.s3, true));
    else if (!cache.folder.empty())
        places.add(Purpose::cache, cache.folder);
}

void add_list(const config::DatasetList& list, Places& places) {
    for (const auto* sets : {&list.images, &list.eval, &list.conditioning})
        for (const config::ImageDataset& set : *sets) {
            if (set.type == config::StoreType::aws)
                places.add(bucket_of(set.s3, false));
            else if (set.type == config::StoreType::local)
                places.add(Purpose::data, set.instance_data_dir);
            else if (!set.csv.cache_dir.empty())
                places.add(Purpose::cache, set.csv.cache_dir);
            if (!set.vae_cache_disable && (sets != &list.conditioning || !set.cache_dir_vae.empty()))
                add_cache(list.latent_cache_of(set), places);
        }
    for (const config::TextEmbeds& texts : list.text_embeds) add_cache(config::text_cache_of(texts), places);
}

}  // namespace

std::string name_of(Purpose purpose) { return std::string{purposes.at(static_cast<std::size_t>(purpose))}; }

std::optional<Purpose> purpose_of(const std::string& name) {
    const auto found = std::find(purposes.begin(), purposes.end(), name);
    if (found == purposes.end()) return std::nullopt;
    return static_cast<Purpose>(found - purposes.begin());
}

void Places::add(Purpose purpose, const std::filesystem::path& folder) {
    const bool is_known = std::any_of(folders.begin(), folders.end(), [&](const FolderPlace& one) {
        return one.purpose == purpose && one.folder == folder;
    });
    if (!is_known) folders.push_back({purpose, folder});
}

void Places::add(BucketPlace bucket) {
    for (BucketPlace& one : buckets)
        if (one.name == bucket.name && one.options.endpoint_url == bucket.options.endpoint_url &&
            one.options.access_key_id == bucket.options.access_key_id) {
            one.is_written |= bucket.is_written;
            return;
        }
    buckets.push_back(std::move(bucket));
}

std::optional<std::filesystem::path> Places::output() const {
    for (const FolderPlace& one : folders)
        if (one.purpose == Purpose::output) return one.folder;
    return std::nullopt;
}

BucketPlace bucket_of_url(const std::string& url) {
    constexpr std::string_view front = "s3://";
    const std::string rest = url.substr(front.size());
    const std::size_t slash = rest.find('/');
    BucketPlace place;
    place.name = url;
    place.options.bucket = rest.substr(0, slash);
    if (slash != std::string::npos) place.options.data_prefix = rest.substr(slash + 1);
    if (place.options.bucket.empty())
        throw Error{Errc::bad_argument, "'" + url + "' names no bucket", "type s3://BUCKET or s3://BUCKET/PREFIX"};
    return place;
}

Line add_places_of(const std::filesystem::path& file, Places& places) {
    try {
        const config::Document document = config::load_trainer_document(file);
        std::size_t before = places.folders.size() + places.buckets.size();
        if (document.root.is(config::NodeKind::list)) {
            add_list(config::load_datasets(file), places);
        } else {
            const TrainSettings settings = TrainSettings::load(file, {});
            places.add(Purpose::output, settings.output_dir);
            if (const auto& disk = settings.options.engine.tiers.nvme_path; !disk.empty())
                places.add(Purpose::offload, disk);
            add_list(settings.datasets, places);
        }
        before = places.folders.size() + places.buckets.size() - before;
        return ok("configuration", file.string() + " names " + std::to_string(before) +
                                       (before == 1 ? " place" : " places") + ", which are looked at");
    } catch (const Error& error) {
        return problem("configuration", std::string{core::first_line(error.what())},
                       "strata config check " + file.string() + " lists all that is wrong");
    }
}

}  // namespace strata::tools::doctor
