#pragma once
// strata/datasets/impl/catalog.ipp - index, listing, table and answers become the samples of a data set.

#include <algorithm>

#include <strata/core/inline.hpp>
#include <strata/datasets/caption_files.hpp>
#include <strata/datasets/detail/catalog.hpp>
#include <strata/pictures/formats.hpp>

namespace strata::datasets::detail {

// Change the number when the same bytes come to mean another size or caption: everything is then read again.
inline std::uint64_t header_source() noexcept { return fingerprint({"header 1"}); }
inline std::uint64_t caption_source(CaptionFile kind, std::string_view version) noexcept {
    return fingerprint({kind == CaptionFile::text ? "textfile 1" : "json 1", version});
}

STRATA_INLINE std::string_view name_of(CaptionFile kind) noexcept {
    switch (kind) {
        case CaptionFile::none:
            return "none";
        case CaptionFile::text:
            return "textfile";
        case CaptionFile::json:
            return "json";
        case CaptionFile::table:
            break;
    }
    return "table";
}

STRATA_INLINE CaptionFile caption_file(const config::ImageDataset& dataset) noexcept {
    if (dataset.only_instance_prompt || dataset.is_conditioning()) return CaptionFile::none;
    switch (dataset.caption_strategy) {
        case config::CaptionStrategy::textfile:
            return CaptionFile::text;
        case config::CaptionStrategy::json:
            return CaptionFile::json;
        case config::CaptionStrategy::parquet:
        case config::CaptionStrategy::csv:
            return CaptionFile::table;
        case config::CaptionStrategy::filename:
        case config::CaptionStrategy::instanceprompt:
            break;
    }
    return CaptionFile::none;
}

STRATA_INLINE std::optional<config::ParquetColumns> table_of(const config::ImageDataset& dataset) {
    if (dataset.type != config::StoreType::csv || caption_file(dataset) != CaptionFile::table) return dataset.parquet;
    config::ParquetColumns columns;
    columns.path = dataset.csv.file.string();
    columns.filename_column = dataset.csv.url_column;
    columns.caption_column = {dataset.csv.caption_column};
    columns.identifier_includes_extension = true;
    return columns;
}

/// What is known of a picture that could not be decoded, forgotten: this program decodes other formats. True if there was any.
inline bool forget_unsupported(IndexedPicture& picture) {
    const auto is_unsupported = [](const auto& fault) {
        return fault && fault->reason == SkipReason::unsupported_format;
    };
    const bool is_known = is_unsupported(picture.size_fault) || is_unsupported(picture.pixel_fault);
    if (is_unsupported(picture.size_fault)) {
        picture.size_fault.reset();
        picture.size_source = 0;
    }
    if (is_unsupported(picture.pixel_fault)) {
        picture.pixel_fault.reset();
        picture.decoded = false;
    }
    return is_known;
}

STRATA_INLINE Catalog::Catalog(const config::ImageDataset& dataset, const DiscoverOptions& options,
                               const std::string& place)
    : dataset_{dataset}, captions_{caption_file(dataset)} {
    if (options.index_folder.empty()) return;
    index_.emplace(options.index_folder, dataset.id, place);
    if (!index_->notice().empty()) notes_.push_back(index_->notice());
    known_ = index_->take_pictures();
    if (index_->fact("decodes") != pictures::decoded_formats())
        for (IndexedPicture& picture : known_) forgot_ |= forget_unsupported(picture);
    const std::string listed = index_->fact("listed");
    const bool names_caption_files = captions_ == CaptionFile::text || captions_ == CaptionFile::json;
    trusted_ = (dataset.preserve_data_backend_cache || dataset.skip_file_discovery.metadata) && !known_.empty() &&
               !listed.empty() && (!names_caption_files || listed == name_of(captions_));
    if (!trusted_) return;
    pictures_ = std::move(known_);
    is_changed_.assign(pictures_.size(), 0);
}

STRATA_INLINE void Catalog::touch(std::size_t index) {
    if (is_changed_[index] != 0) return;
    is_changed_[index] = 1;
    changed_.push_back(index);
}

STRATA_INLINE void Catalog::add(storage::ObjectInfo&& info) {
    const std::string_view extension = captions_ == CaptionFile::text   ? ".txt"
                                       : captions_ == CaptionFile::json ? ".json"
                                                                        : "";
    if (!extension.empty() && info.key.ends_with(extension)) {
        caption_files_.emplace_back(std::move(info.key), caption_source(captions_, info.version));
        return;
    }
    if (!pictures::is_picture_name(info.key)) return;
    for (; next_known_ < known_.size() && known_[next_known_].sample.key < info.key; ++next_known_)
        gone_.push_back(known_[next_known_].sample.key);
    const bool is_known = next_known_ < known_.size() && known_[next_known_].sample.key == info.key;
    is_changed_.push_back(0);
    if (is_known && known_[next_known_].sample.version == info.version &&
        known_[next_known_].sample.bytes == info.size) {
        pictures_.push_back(std::move(known_[next_known_++]));
        return;
    }
    IndexedPicture& picture = pictures_.emplace_back();
    if (is_known) {  // the picture changed, its caption need not have
        IndexedPicture& known = known_[next_known_++];
        picture.sample.caption = std::move(known.sample.caption);
        picture.sample.other_captions = std::move(known.sample.other_captions);
        picture.caption_source = known.caption_source;
    }
    picture.sample.key = std::move(info.key);
    picture.sample.version = std::move(info.version);
    picture.sample.bytes = info.size;
}

STRATA_INLINE void Catalog::end_listing() {
    for (; next_known_ < known_.size(); ++next_known_) gone_.push_back(known_[next_known_].sample.key);
    std::vector<IndexedPicture>{}.swap(known_);
}

STRATA_INLINE std::size_t Catalog::find(std::string_view key) const {
    const auto found =
        std::lower_bound(pictures_.begin(), pictures_.end(), key,
                         [](const IndexedPicture& one, std::string_view k) { return one.sample.key < k; });
    return found != pictures_.end() && found->sample.key == key ? static_cast<std::size_t>(found - pictures_.begin())
                                                                : pictures_.size();
}

STRATA_INLINE int Catalog::missing(std::size_t index) {
    IndexedPicture& picture = pictures_[index];
    int what = 0;
    if (!sizes_from_table() && picture.size_source != header_source()) what |= ReadTask::header;
    if (captions_ == CaptionFile::text || captions_ == CaptionFile::json) {
        std::uint64_t source = picture.caption_source;
        bool has_file = source == 0;
        if (!trusted_) {
            const std::string key = caption_key(picture.sample.key, captions_ == CaptionFile::text ? ".txt" : ".json");
            const auto found = std::lower_bound(caption_files_.begin(), caption_files_.end(), key,
                                                [](const auto& one, const std::string& k) { return one.first < k; });
            has_file = found != caption_files_.end() && found->first == key;
            source = has_file ? found->second : caption_source(captions_, "");
        }
        if (has_file && (source != picture.caption_source || source == 0)) {
            what |= ReadTask::caption;
        } else if (source != picture.caption_source) {
            picture.sample.caption.clear();
            picture.sample.other_captions.clear();
            picture.caption_source = source;
            touch(index);
        }
    }
    if (dataset_.scan_for_errors && !picture.decoded) what |= ReadTask::pixels;
    return what;
}

STRATA_INLINE void Catalog::plan_reading() {
    tasks_ = 0;
    for (std::size_t i = 0; i < pictures_.size(); ++i) tasks_ += missing(i) != 0 ? 1U : 0U;
    if (tasks_ == 0) cursor_ = pictures_.size();
}

STRATA_INLINE std::vector<ReadTask> Catalog::next_tasks(std::size_t limit) {
    std::vector<ReadTask> tasks;
    for (; cursor_ < pictures_.size() && tasks.size() < limit; ++cursor_) {
        const int what = missing(cursor_);
        const Sample& sample = pictures_[cursor_].sample;
        if (what != 0) tasks.push_back({cursor_, what, sample.key, sample.version, sample.bytes});
    }
    return tasks;
}

STRATA_INLINE void Catalog::apply(ReadAnswer&& answer) {
    IndexedPicture& picture = pictures_[answer.index];
    touch(answer.index);
    if (!answer.failure.empty()) {  // it is read again at the next start
        failures_[answer.index] = std::move(answer.failure);
        if ((answer.what & ReadTask::header) != 0) picture.size_source = 0;
        if ((answer.what & ReadTask::caption) != 0) picture.caption_source = 0;
        return;
    }
    const auto boxed = [](std::optional<PictureFault>& fault) {
        return fault ? std::make_unique<PictureFault>(std::move(*fault)) : nullptr;
    };
    if ((answer.what & ReadTask::header) != 0) {
        picture.size_source = header_source();
        picture.sample.size = answer.size;
        picture.size_fault = boxed(answer.size_fault);
    }
    if ((answer.what & ReadTask::caption) != 0) {
        picture.sample.caption = std::move(answer.caption);
        picture.sample.other_captions.clear();
        picture.caption_source = caption_source(captions_, "");
        const std::string key = caption_key(picture.sample.key, captions_ == CaptionFile::text ? ".txt" : ".json");
        const auto found = std::lower_bound(caption_files_.begin(), caption_files_.end(), key,
                                            [](const auto& one, const std::string& k) { return one.first < k; });
        if (found != caption_files_.end() && found->first == key) picture.caption_source = found->second;
    }
    if ((answer.what & ReadTask::pixels) != 0) {
        picture.decoded = true;
        picture.sample.content = answer.content;
        picture.pixel_fault = boxed(answer.pixel_fault);
        if (!answer.note.empty() && ++noted_ == 1) {
            first_noted_ = picture.sample.key;
            first_note_ = answer.note;
        }
    }
}

STRATA_INLINE void Catalog::keep(std::map<std::string, std::string> facts) {
    // While rows of what was forgotten may still be there, the next start has to forget it, too.
    if (!forgot_) facts.emplace("decodes", pictures::decoded_formats());
    if (index_) {
        std::vector<const IndexedPicture*> pictures;
        for (const std::size_t index : changed_) pictures.push_back(&pictures_[index]);
        index_->write(pictures, gone_, facts);
    }
    for (const std::size_t index : changed_) is_changed_[index] = 0;
    changed_.clear();
    gone_.clear();
}

}  // namespace strata::datasets::detail
