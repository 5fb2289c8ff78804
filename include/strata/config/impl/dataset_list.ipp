#pragma once
// strata/config/impl/dataset_list.ipp - reading multidatabackend.json, and the links between its entries.

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include <strata/config/dataset_list.hpp>
#include <strata/config/impl/dataset.ipp>
#include <strata/config/impl/dataset_checks.ipp>
#include <strata/config/impl/json_of_node.ipp>
#include <strata/config/impl/key.ipp>

namespace strata::config {

namespace detail {

template <class Embeds>
const Embeds* find_embeds(const std::vector<Embeds>& entries, std::string_view id) {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const Embeds& entry) { return entry.id == id; });
    return found == entries.end() ? nullptr : &*found;
}

/// "a" + "b" -> "a/b"; a part that is empty leaves no '/'.
inline std::string joined(std::string_view prefix, std::string_view folder) {
    std::string all{prefix};
    if (!all.empty() && !folder.empty() && !all.ends_with('/')) all += '/';
    return all.append(folder);
}

inline CachePlace cache_place(StoreType type, const S3Settings& s3, std::string_view prefix,
                              const std::filesystem::path& folder) {
    if (type != StoreType::aws) return {StoreType::local, folder, {}};
    CachePlace place{type, {}, s3};
    place.s3.data_prefix = joined(prefix, folder.generic_string());
    return place;
}

/// Everything of a list that is read entry by entry.
struct ReadList {
    DatasetList list;
    std::map<std::string, Place> places;  ///< of enabled entries, by id
    std::set<std::string> disabled;       ///< their ids
    bool pictures_disabled = false;       ///< one of them at least was to train on
};

/// Throws Errc::bad_reference: an id that no enabled entry of that kind has.
///
///   type  dataset_type of the kind
template <class Entry>
[[noreturn]] void refuse_link(const ReadList& read, const ImageDataset& dataset, std::string_view key,
                              const std::string& link, const std::vector<Entry>& entries, std::string_view type) {
    const Place& place = read.places.at(dataset.id);
    std::vector<std::string_view> ids;
    for (const Entry& entry : entries) ids.push_back(entry.id);
    const std::string_view near = nearest_name(link, ids);
    const bool is_disabled = read.disabled.contains(link);
    const bool is_other = !is_disabled && read.places.contains(link);
    throw Error{Errc::bad_reference,
                place_of(place.source, place.path, std::string{key}) + " links to '" + link + "', " +
                    (is_disabled ? "which is disabled"
                     : is_other  ? "whose dataset_type is not " + std::string{type}
                                 : "which no entry has as its id"),
                is_disabled    ? "enable that entry or correct the link"
                : near.empty() ? "add an entry with dataset_type " + std::string{type} + " or correct the link"
                               : "did you mean '" + std::string{near} + "'"};
}

/// A data set without a list of its own has that of its text_embeds entry.
inline void take_caption_filters(const TextEmbeds& embeds, ImageDataset& dataset) {
    if (dataset.caption_filter_list.empty()) dataset.caption_filter_list = embeds.caption_filter_list;
}

/// Gives a data set the id of its text_embeds entry, and what follows from it.
inline void link_text_embeds(const ReadList& read, ImageDataset& dataset) {
    const std::vector<TextEmbeds>& entries = read.list.text_embeds;
    if (!dataset.text_embeds.empty()) {
        const TextEmbeds* const linked = find_embeds(entries, dataset.text_embeds);
        if (linked == nullptr) refuse_link(read, dataset, "text_embeds", dataset.text_embeds, entries, "text_embeds");
        take_caption_filters(*linked, dataset);
        return;
    }
    const TextEmbeds* fallback = entries.size() == 1 ? &entries.front() : nullptr;
    for (const TextEmbeds& entry : entries)
        if (entry.is_default) fallback = &entry;
    if (fallback == nullptr)
        throw Error{
            Errc::bad_reference,
            read.places.at(dataset.id).at() + ": data set '" + dataset.id + "' has nowhere to keep embedded captions",
            entries.empty() ? "add an entry {\"id\": \"text\", \"dataset_type\": \"text_embeds\", \"cache_dir\": ...}"
                            : "give one text_embeds entry \"default\": true, or this one \"text_embeds\": its id"};
    dataset.text_embeds = fallback->id;
    take_caption_filters(*fallback, dataset);
}

/// Checks a data set's image_embeds, and that the folder of its latents has one name.
inline void link_image_embeds(const ReadList& read, const ImageDataset& dataset) {
    const Place& place = read.places.at(dataset.id);
    const ImageEmbeds* embeds = nullptr;
    if (!dataset.image_embeds.empty()) {
        embeds = find_embeds(read.list.image_embeds, dataset.image_embeds);
        if (embeds == nullptr)
            refuse_link(read, dataset, "image_embeds", dataset.image_embeds, read.list.image_embeds, "image_embeds");
    }
    const bool both = embeds != nullptr && !embeds->cache_dir.empty() && !dataset.cache_dir_vae.empty();
    if (both && embeds->cache_dir.lexically_normal() != dataset.cache_dir_vae.lexically_normal())
        place.refuse("cache_dir_vae",
                     "and cache_dir of '" + embeds->id + "', where image_embeds leads, name two folders",
                     "keep one of them");
    const bool in_bucket = (embeds != nullptr ? embeds->type : dataset.type) == StoreType::aws;
    if (in_bucket && dataset.cache_dir_vae.is_absolute())
        place.refuse("cache_dir_vae", "is an absolute path, and the latents are kept in a bucket",
                     "name a folder of the bucket, or link image_embeds to an entry of type local");
    const bool is_named = !dataset.cache_dir_vae.empty() ||
                          (embeds != nullptr && (embeds->type == StoreType::aws || !embeds->cache_dir.empty()));
    if (!is_named && !dataset.vae_cache_disable)
        place.refuse("cache_dir_vae", "is missing",
                     "name a folder for the cached latents, or set vae_cache_disable to true");
}

inline void link_conditioning_data(const ReadList& read, const ImageDataset& dataset) {
    for (const std::string& id : dataset.conditioning_data)
        if (find_embeds(read.list.conditioning, id) == nullptr)
            refuse_link(read, dataset, "conditioning_data", id, read.list.conditioning, "conditioning");
}

/// What a conditioning data set says of the data set that it belongs to is what that one says.
inline void check_source_data_set(const ReadList& read, const ImageDataset& conditioning) {
    if (conditioning.source_dataset_id.empty() || read.disabled.contains(conditioning.source_dataset_id)) return;
    for (const std::vector<ImageDataset>* const sets : {&read.list.images, &read.list.eval})
        if (const ImageDataset* const source = find_embeds(*sets, conditioning.source_dataset_id)) {
            const std::vector<std::string>& named = source->conditioning_data;
            if (std::find(named.begin(), named.end(), conditioning.id) != named.end()) return;
            const Place& place = read.places.at(conditioning.id);
            throw Error{Errc::bad_reference,
                        place_of(place.source, place.path, "source_dataset_id") + " links to '" + source->id +
                            "', whose conditioning_data does not name '" + conditioning.id + "'",
                        "add \"conditioning_data\": \"" + conditioning.id + "\" to the entry '" + source->id + "'"};
        }
    refuse_link(read, conditioning, "source_dataset_id", conditioning.source_dataset_id, read.list.images, "image");
}

/// Reads one entry into `read`. Of a disabled one only the id counts.
inline void read_entry(ReadList& read, const nlohmann::json& entry, const Place& place, const ImageDataset& defaults) {
    const Source& source = place.source;  // no structured binding: clang 14 lets no lambda have one
    const std::string& path = place.path;
    if (!entry.is_object())
        throw Error{Errc::bad_value, place.at() + ": '" + path.substr(0, path.size() - 1) + "' is not a JSON object",
                    "write {\"id\": ...} there"};
    const auto value_of = [&](const KeyInfo& info) -> std::optional<Value> {
        const nlohmann::json* const json = member(entry, source, path, info);
        return json == nullptr ? std::nullopt : std::optional{Value{*json, source, path + info.key}};
    };
    const std::string id = value_of({"id", {}, "required", "Unique name; appears in messages", {}})->text();
    if (id.empty()) place.refuse("id", "is empty", "give the entry a name");
    if (read.places.contains(id) || read.disabled.contains(id))
        place.refuse("id", "is '" + id + "', which another entry has", "give every entry an id of its own");
    const std::optional<Value> kind = value_of({"dataset_type", {}, {}, {}, {}});
    const std::string type = kind ? kind->text() : "image";
    if (const auto disabled = value_of({"disabled", {}, {}, {}, "disable"}); disabled && disabled->flag()) {
        read.disabled.insert(id);
        read.pictures_disabled |= type == "image";
        return;
    }
    read.places.emplace(id, place);
    if (type == "text_embeds") {
        TextEmbeds embeds = text_embeds_schema().read(entry, source, path);
        check_cache(embeds.type, embeds.s3, embeds.cache_dir, true, place);
        read.list.text_embeds.push_back(std::move(embeds));
    } else if (type == "image_embeds") {
        ImageEmbeds embeds = image_embeds_schema().read(entry, source, path);
        check_cache(embeds.type, embeds.s3, embeds.cache_dir, false, place);
        read.list.image_embeds.push_back(std::move(embeds));
    } else if (type == "conditioning") {
        ImageDataset dataset = conditioning_schema().read(entry, source, path);
        check_conditioning(dataset, place);
        read.list.conditioning.push_back(std::move(dataset));
    } else {
        ImageDataset dataset = image_schema().read(entry, source, path, defaults);
        check_image(dataset, place);
        if (dataset.maximum_image_size == 0) dataset.target_downsample_size = 0;  // no picture is larger
        (dataset.is_eval() ? read.list.eval : read.list.images).push_back(std::move(dataset));
    }
}

}  // namespace detail

STRATA_INLINE std::vector<DatasetList> DatasetList::evaluated() const {
    std::vector<DatasetList> lists;
    for (const ImageDataset& set : eval) {
        DatasetList list{.images = {set},
                         .eval = {},
                         .conditioning = conditioning,
                         .text_embeds = text_embeds,
                         .image_embeds = image_embeds};
        list.images.front().dataset_type = DatasetType::image;
        lists.push_back(std::move(list));
    }
    return lists;
}

STRATA_INLINE const TextEmbeds& DatasetList::text_embeds_of(const ImageDataset& dataset) const {
    if (const TextEmbeds* const found = detail::find_embeds(text_embeds, dataset.text_embeds)) return *found;
    throw Error{Errc::bad_reference, "data set '" + dataset.id + "' has no text_embeds entry", "add one to the list"};
}

STRATA_INLINE std::vector<std::size_t> DatasetList::conditioning_of(const ImageDataset& dataset) const {
    std::vector<std::size_t> indices;
    for (const std::string& id : dataset.conditioning_data) {
        const ImageDataset* const found = detail::find_embeds(conditioning, id);
        if (found == nullptr)
            throw Error{Errc::bad_reference,
                        "data set '" + dataset.id + "' has no data set '" + id + "' of dataset_type conditioning",
                        "add it to the list"};
        indices.push_back(static_cast<std::size_t>(found - conditioning.data()));
    }
    return indices;
}

STRATA_INLINE CachePlace DatasetList::latent_cache_of(const ImageDataset& dataset) const {
    if (dataset.image_embeds.empty()) {
        CachePlace place = detail::cache_place(dataset.type, dataset.s3, "", dataset.cache_dir_vae);
        place.compress_disk_cache = dataset.compress_disk_cache;
        return place;
    }
    const ImageEmbeds* const found = detail::find_embeds(image_embeds, dataset.image_embeds);
    if (found == nullptr)
        throw Error{Errc::bad_reference,
                    "data set '" + dataset.id + "' has no image_embeds entry '" + dataset.image_embeds + "'",
                    "add it to the list"};
    CachePlace place = detail::cache_place(found->type, found->s3, found->s3.data_prefix,
                                           dataset.cache_dir_vae.empty() ? found->cache_dir : dataset.cache_dir_vae);
    place.compress_disk_cache = dataset.compress_disk_cache ? dataset.compress_disk_cache : found->compress_disk_cache;
    return place;
}

STRATA_INLINE CachePlace text_cache_of(const TextEmbeds& embeds) {
    CachePlace place = detail::cache_place(embeds.type, embeds.s3, embeds.s3.data_prefix, embeds.cache_dir);
    place.compress_disk_cache = embeds.compress_disk_cache;
    return place;
}

namespace detail {

/// What must hold of the whole list. Throws Errc::bad_value.
inline void check_list(const ReadList& read, const std::string& file) {
    const DatasetList& list = read.list;
    const auto is_default = [](const TextEmbeds& embeds) { return embeds.is_default; };
    const auto is_there_at_first = [](const ImageDataset& dataset) {
        return dataset.start_epoch <= 1 && dataset.start_step <= 1;
    };
    if (std::count_if(list.text_embeds.begin(), list.text_embeds.end(), is_default) > 1)
        throw Error{Errc::bad_value, file + ": two text_embeds entries are the default",
                    "keep \"default\": true in one"};
    if (list.images.empty() && read.pictures_disabled)
        throw Error{Errc::bad_value, file + ": all data sets with pictures to train on are disabled",
                    "enable one of them"};
    if (list.images.empty())
        throw Error{Errc::bad_value, file + " has no data set with pictures to train on",
                    "add an entry with dataset_type image"};
    if (std::none_of(list.images.begin(), list.images.end(), is_there_at_first))
        throw Error{Errc::bad_value, file + ": no data set takes part from the first step on",
                    "give one of them start_epoch 1 and start_step 0"};
}

}  // namespace detail

STRATA_INLINE DatasetList read_datasets(const Document& document, const ImageDataset& defaults) {
    const Source source{document};
    Problems problems;
    const nlohmann::json json = detail::json_of(document, problems);
    if (!json.is_array())
        throw Error{Errc::bad_value,
                    source.name() + (json.is_object() && json.contains("id") ? " is one entry, and no list of data sets"
                                                                             : " is not a list of data sets"),
                    "write [{\"id\": ...}, ...]"};
    detail::ReadList read;
    for (std::size_t i = 0; i < json.size(); ++i)
        problems.during([&] { detail::read_entry(read, json[i], {source, "[" + std::to_string(i) + "]."}, defaults); });
    problems.finish();  // what follows would be about entries that could not be read
    problems.during([&] { detail::check_list(read, source.name()); });
    for (std::vector<ImageDataset>* const sets : {&read.list.images, &read.list.eval})
        for (ImageDataset& dataset : *sets) {
            problems.during([&] { detail::link_text_embeds(read, dataset); });
            problems.during([&] { detail::link_image_embeds(read, dataset); });
            problems.during([&] { detail::link_conditioning_data(read, dataset); });
        }
    for (const ImageDataset& dataset : read.list.conditioning)
        problems.during([&] { detail::check_source_data_set(read, dataset); });
    problems.finish();
    return std::move(read.list);
}

STRATA_INLINE DatasetList load_datasets(const std::filesystem::path& path, const ImageDataset& defaults) {
    return read_datasets(load_document(path), defaults);
}

}  // namespace strata::config
