#pragma once
// strata/data/discovery.hpp - which pictures a folder holds, how large they are and what they are called.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <oneapi/tbb/parallel_for.h>

#include <strata/comm/agree.hpp>
#include <strata/comm/communicator.hpp>
#include <strata/config/dataset_list.hpp>
#include <strata/core/error.hpp>
#include <strata/data/buckets.hpp>
#include <strata/data/byte_fields.hpp>
#include <strata/data/image_header.hpp>
#include <strata/data/report.hpp>
#include <strata/storage/object_store.hpp>

namespace strata::data {

/// A captioned picture that can be trained on.
struct Sample {
    std::string key;      ///< in its data set's store
    std::string version;  ///< of the file; see storage::ObjectInfo
    std::uint64_t bytes = 0;
    PictureSize size;  ///< as the picture is meant to be seen
    std::string caption;
};

/// What discover() found in one data set; samples are sorted by key.
struct Discovered {
    std::vector<Sample> samples;
    std::vector<Skipped> skipped;
    std::int64_t found = 0;
};

/// True for names that end as those of picture files do, in any case. What a file is, is told by its first bytes; names
/// of formats that are not decoded (.gif, .avif, ...) count as well, so that such files are named and not overlooked.
[[nodiscard]] bool is_picture_name(std::string_view key) noexcept;

/// The key of the caption file beside a picture: "a/b.png" -> "a/b.txt".
[[nodiscard]] std::string caption_key(std::string_view picture_key);

/// The first line of `text` with more than white space, without white space at its ends; empty if there is none.
/// A byte order mark is left out.
[[nodiscard]] std::string first_line(std::string_view text);

/// "a/red_fire-truck.png" -> "red fire truck".
[[nodiscard]] std::string caption_from_name(std::string_view key);

namespace detail {

/// One picture judged: a sample, or the reason why not.
struct Judged {
    Sample sample;
    std::optional<Skipped> skipped;
};

[[nodiscard]] std::string pack(const std::vector<Judged>& judged);
void unpack(std::string_view bytes, const std::string& dataset, std::vector<Judged>& into);

template <storage::ObjectStore Store>
std::string caption_of(const Store& store, const config::ImageDataset& dataset, const std::string& key,
                       const std::set<std::string>& texts) {
    switch (dataset.caption_strategy) {
        case config::CaptionStrategy::instanceprompt: return dataset.instance_prompt;
        case config::CaptionStrategy::filename: return caption_from_name(key);
        case config::CaptionStrategy::textfile: break;
        case config::CaptionStrategy::parquet:
        case config::CaptionStrategy::json:
            throw Error{Errc::unsupported_key, "data set '" + dataset.id + "': this caption_strategy is not read here",
                        "use textfile, filename or instanceprompt"};
    }
    if (!texts.contains(caption_key(key))) return {};
    const std::vector<std::byte> bytes = store.get_range(caption_key(key), 0, 64 * 1024);
    return first_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// Reads the picture's header and its caption. Failures of this one file become its reason.
template <storage::ObjectStore Store>
Judged judge(const Store& store, const config::ImageDataset& dataset, const storage::ObjectInfo& info,
             const std::set<std::string>& texts) {
    Judged judged{{info.key, info.version, info.size, {}, {}}, std::nullopt};
    const auto skip = [&](SkipReason reason, std::string detail) {
        judged.skipped = Skipped{dataset.id, store.where(info.key), reason, std::move(detail)};
        return judged;
    };
    try {
        const auto read = [&](std::uint64_t offset, std::size_t length) {
            return store.get_range(info.key, offset, length);
        };
        require_file_within({}, info.size, "it");
        judged.sample.size = read_image_header(read, "it").size();
        require_within({}, judged.sample.size, "it");
        judged.sample.caption = caption_of(store, dataset, info.key, texts);
    } catch (const Error& error) {
        if (error.code() == Errc::unsupported_picture) return skip(SkipReason::unsupported_format, error.problem());
        if (error.code() == Errc::bad_picture) return skip(SkipReason::unreadable, error.problem());
        if (error.code() == Errc::not_found || error.code() == Errc::io_failed)
            return skip(SkipReason::unreadable, error.what());
        throw;  // a store that cannot be reached says nothing about its pictures
    }
    const PictureSize size = judged.sample.size;
    const std::string shown = std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
    if (judged.sample.caption.empty()) return skip(SkipReason::no_caption, {});
    if (!is_large_enough(size, dataset)) return skip(SkipReason::below_minimum_size, shown);
    const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
    if (ratio < dataset.minimum_aspect_ratio || ratio > dataset.maximum_aspect_ratio)
        return skip(SkipReason::outside_aspect_ratio, shown);
    return judged;
}

}  // namespace detail

/// Lists a data set and reads the header and caption of every picture in it, never the pixels.
///
/// Rank 0 lists; every rank reads its share of the headers with TBB; all ranks get the same result.
/// Collective. Throws Errc::no_samples when the folder is missing or holds no picture, and what the store
/// throws when it cannot be listed or reached. A picture that cannot be read is skipped and named.
template <comm::Communicator Comm, storage::ObjectStore Store>
Discovered discover(Comm& comm, const Store& store, const config::ImageDataset& dataset) {
    std::string listed;
    comm::agree(comm, [&] {
        if (comm.rank() != 0) return;
        FieldWriter fields;
        for (const storage::ObjectInfo& info : store.list(""))
            if (is_picture_name(info.key) || info.key.ends_with(".txt")) fields << info.key << info.size << info.version;
        listed = fields.bytes();
    });
    const std::string listing = comm.all_gather_varied(listed)[0];

    std::vector<storage::ObjectInfo> pictures;
    std::set<std::string> texts;
    for (FieldReader fields{listing}; !fields.empty();) {
        storage::ObjectInfo info;
        info.key = fields.text();
        info.size = static_cast<std::uint64_t>(fields.integer());
        info.version = fields.text();
        if (is_picture_name(info.key)) pictures.push_back(std::move(info));
        else texts.insert(std::move(info.key));
    }
    if (pictures.empty())
        throw Error{Errc::no_samples,
                    "data set '" + dataset.id + "': '" + store.where("") + "' is missing or holds no pictures",
                    "correct instance_data_dir, or put pictures there"};

    const auto world = static_cast<std::size_t>(comm.world());
    const auto rank = static_cast<std::size_t>(comm.rank());
    std::vector<detail::Judged> mine(pictures.size() / world + (pictures.size() % world > rank ? 1 : 0));
    comm::agree(comm, [&] {
        oneapi::tbb::parallel_for(std::size_t{0}, mine.size(), [&](std::size_t i) {
            mine[i] = detail::judge(store, dataset, pictures[i * world + rank], texts);
        });
    });
    std::vector<detail::Judged> all;
    for (const std::string& bytes : comm.all_gather_varied(detail::pack(mine))) detail::unpack(bytes, dataset.id, all);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.sample.key < b.sample.key; });

    Discovered result;
    result.found = static_cast<std::int64_t>(pictures.size());
    for (detail::Judged& judged : all) {
        if (judged.skipped) result.skipped.push_back(std::move(*judged.skipped));
        else result.samples.push_back(std::move(judged.sample));
    }
    return result;
}

}  // namespace strata::data

#ifndef STRATA_COMPILED
#include <strata/data/impl/discovery.ipp>
#endif
