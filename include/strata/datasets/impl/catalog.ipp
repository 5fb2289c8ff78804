#pragma once
// strata/datasets/impl/catalog.ipp - index, listing, table and answers become the samples of a data set.

#include <algorithm>

#include <strata/core/inline.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/detail/catalog.hpp>
#include <strata/datasets/discovery.hpp>
#include <strata/datasets/sample_choice.hpp>
#include <strata/datasets/sample_fields.hpp>
#include <strata/pictures/buckets.hpp>
#include <strata/pictures/decode_image.hpp>
#include <strata/pictures/image_header.hpp>
#include <strata/pictures/picture_fault.hpp>

namespace strata::datasets::detail {

// Change the number when the same bytes come to mean another size or caption: everything is then read again.
inline std::uint64_t header_source() noexcept { return fingerprint({"header 1"}); }
inline std::uint64_t caption_source(CaptionFile kind, std::string_view version) noexcept {
    return fingerprint({kind == CaptionFile::text ? "textfile 1" : "json 1", version});
}

inline std::string_view name_of(CaptionFile kind) noexcept {
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

STRATA_INLINE std::string pack(const std::vector<ReadTask>& tasks) {
    FieldWriter fields;
    for (const ReadTask& task : tasks) fields << task.index << task.what << task.key << task.version << task.bytes;
    return fields.bytes();
}

STRATA_INLINE std::vector<ReadTask> unpack_tasks(std::string_view bytes) {
    std::vector<ReadTask> tasks;
    for (FieldReader fields{bytes}; !fields.empty();) {
        ReadTask& task = tasks.emplace_back();
        task.index = static_cast<std::size_t>(fields.integer());
        task.what = static_cast<int>(fields.integer());
        task.key = fields.text();
        task.version = fields.text();
        task.bytes = static_cast<std::uint64_t>(fields.integer());
    }
    return tasks;
}

STRATA_INLINE std::string pack(const std::vector<ReadAnswer>& answers) {
    FieldWriter fields;
    for (const ReadAnswer& answer : answers)
        fields << answer.index << answer.what << answer.failure << answer.size.width << answer.size.height
               << answer.caption << answer.content.text() << answer.size_fault << answer.pixel_fault << answer.note;
    return fields.bytes();
}

STRATA_INLINE std::vector<ReadAnswer> unpack_answers(std::string_view bytes) {
    std::vector<ReadAnswer> answers;
    for (FieldReader fields{bytes}; !fields.empty();) {
        ReadAnswer& answer = answers.emplace_back();
        answer.index = static_cast<std::size_t>(fields.integer());
        answer.what = static_cast<int>(fields.integer());
        answer.failure = fields.text();
        answer.size.width = fields.integer();
        answer.size.height = fields.integer();
        answer.caption = fields.text();
        answer.content = storage::ContentHash::of_text(fields.text());
        fields >> answer.size_fault >> answer.pixel_fault;
        answer.note = fields.text();
    }
    return answers;
}

STRATA_INLINE Verdict verdict_of(const Error& error) {
    switch (error.code()) {
        case Errc::no_picture_library:
            return {PictureFault{SkipReason::unsupported_format, error.problem() + ": " + error.fix(), false}, {}};
        case Errc::unsupported_picture:
            return {PictureFault{SkipReason::unsupported_format, error.problem(), false}, {}};
        case Errc::bad_picture:
        case Errc::picture_too_large:
            return {PictureFault{SkipReason::unreadable, error.problem(), pictures::is_damage(error.code())}, {}};
        case Errc::picture_undecided:
        case Errc::not_found:
        case Errc::io_failed:
        case Errc::object_changed:
        case Errc::url_failed:
            return {std::nullopt, error.what()};
        default:
            throw error;
    }
}

STRATA_INLINE void require_usable(const pictures::ImageHeader& header) {
    pictures::require_within({}, header.stored, "it");
    pictures::require_decoder(header.format, "it");
}

STRATA_INLINE Look look_at(std::span<const std::byte> file, ByteBudget& memory) {
    Look look;
    try {
        pictures::require_file_within({}, file.size(), "it");
        const pictures::ImageHeader header = pictures::image_header(file, "it");
        require_usable(header);
        look.size = header.size();
        const ByteBudget::Part taken = memory.take(pictures::decode_bytes(header));
        look.note = pictures::decode_image(file, header, {}, "it").note;
    } catch (const Error& error) {
        Verdict verdict = verdict_of(error);
        look.fault = std::move(verdict.fault);
        look.failure = std::move(verdict.failure);
    }
    return look;
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

STRATA_INLINE bool Catalog::begin_table(const std::string& place, const std::string& version) {
    const config::ParquetColumns columns = table_of(dataset_).value();
    FieldWriter names;
    names << columns.filename_column << (columns.identifier_includes_extension ? 1 : 0);
    if (sizes_from_table()) names << "sizes" << columns.width_column << columns.height_column;
    if (captions_ == CaptionFile::table) {
        for (const std::string& name : columns.caption_column) names << "caption" << name;
        for (const std::string& name : columns.fallback_caption_column) names << "fallback" << name;
    }
    table_source_ = fingerprint({"table 1", place, version, names.bytes()});
    table_place_ = place;
    const bool known = std::all_of(pictures_.begin(), pictures_.end(), [&](const IndexedPicture& picture) {
        return (!sizes_from_table() || picture.size_source == table_source_) &&
               (captions_ != CaptionFile::table || picture.caption_source == table_source_);
    });
    if (known && index_) {
        if (const std::string said = index_->fact("table"); !said.empty()) notes_.push_back(said);
        return false;
    }
    in_table_.assign(pictures_.size(), 0);
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
        IndexedPicture& picture = pictures_[i];
        if (sizes_from_table()) {
            picture.sample.size = {};
            picture.size_source = table_source_;
            picture.size_fault = std::make_unique<PictureFault>(
                PictureFault{SkipReason::not_in_table, "no row in '" + table_place_ + "'", false});
        }
        if (captions_ == CaptionFile::table) {
            picture.sample.caption.clear();
            picture.sample.other_captions.clear();
            picture.caption_source = table_source_;
        }
        touch(i);
    }
    return true;
}

STRATA_INLINE void Catalog::add_row(TableRow&& row) {
    ++rows_;
    const std::size_t index = find(row.key);
    if (index == pictures_.size()) {
        constexpr std::int64_t most_names = 10;
        if (++orphans_ <= most_names) orphan_names_ += (orphan_names_.empty() ? "" : ", ") + row.key;
        return;
    }
    if (in_table_[index] != 0) {
        ++repeated_;
        return;
    }
    in_table_[index] = 1;
    IndexedPicture& picture = pictures_[index];
    if (sizes_from_table()) {
        picture.size_fault.reset();
        try {
            if (row.size == pictures::PictureSize{})
                picture.size_fault = std::make_unique<PictureFault>(
                    PictureFault{SkipReason::not_in_table, "no width and height in '" + table_place_ + "'", false});
            else
                pictures::require_within({}, row.size, "it");
            picture.sample.size = row.size;
        } catch (const Error& error) {
            picture.size_fault =
                std::make_unique<PictureFault>(PictureFault{SkipReason::unreadable, error.problem(), false});
        }
    }
    if (captions_ == CaptionFile::table && !row.captions.empty()) {
        picture.sample.caption = std::move(row.captions.front());
        picture.sample.other_captions.assign(std::make_move_iterator(row.captions.begin() + 1),
                                             std::make_move_iterator(row.captions.end()));
    }
}

STRATA_INLINE void Catalog::end_table() {
    const auto rowless = std::count(in_table_.begin(), in_table_.end(), 0);
    std::string said;
    if (rowless > 0) said += ", " + std::to_string(rowless) + " pictures have no row";
    if (repeated_ > 0) said += ", " + std::to_string(repeated_) + " rows name a picture a second time and are left out";
    if (orphans_ > 0) {
        const auto named = std::min<std::int64_t>(orphans_, 10);
        said += ", " + std::to_string(orphans_) + " rows name no picture of data set '" + dataset_.id +
                "': " + orphan_names_;
        if (orphans_ > named) said += " and " + std::to_string(orphans_ - named) + " more";
    }
    if (!said.empty()) {
        said = "table '" + table_place_ + "': " + std::to_string(rows_) + " rows" + said;
        notes_.push_back(said);
    }
    in_table_ = {};
    keep({{"table", said}});
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
        if (!answer.note.empty() && ++noted_ == 1) first_noted_ = picture.sample.key + ": " + answer.note;
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

STRATA_INLINE std::vector<Sample> Catalog::damaged() const {
    std::vector<Sample> samples;
    for (const IndexedPicture& picture : pictures_)
        if (picture.pixel_fault && picture.pixel_fault->damaged) samples.push_back(picture.sample);
    return samples;
}

STRATA_INLINE void Catalog::removed(const std::string& key, const std::string& note) {
    notes_.push_back(note);
    const std::size_t index = find(key);
    gone_.push_back(key);
    IndexedPicture& picture = pictures_[index];
    picture.pixel_fault->detail = "deleted: " + picture.pixel_fault->detail;
}

STRATA_INLINE void Catalog::looked_again(const std::string& key, const std::optional<PictureFault>& fault,
                                         const std::string& failure) {
    const std::size_t index = find(key);
    IndexedPicture& picture = pictures_[index];
    picture.pixel_fault = fault ? std::make_unique<PictureFault>(*fault) : nullptr;
    picture.decoded = failure.empty();
    if (!failure.empty()) failures_[index] = failure;
    touch(index);
}

STRATA_INLINE std::optional<Skipped> Catalog::judge(const IndexedPicture& picture, std::size_t index) const {
    const auto skip = [&](SkipReason reason, std::string detail) {
        return Skipped{dataset_.id, {}, reason, std::move(detail)};
    };
    if (const auto failure = failures_.find(index); failure != failures_.end())
        return skip(SkipReason::unreadable, failure->second);
    if (picture.pixel_fault) return skip(picture.pixel_fault->reason, picture.pixel_fault->detail);
    if (picture.size_fault) return skip(picture.size_fault->reason, picture.size_fault->detail);
    if (dataset_.is_conditioning()) return std::nullopt;  // sizes and captions are those of the pictures it belongs to
    if (picture.sample.caption.empty())
        return skip(SkipReason::no_caption, captions_ == CaptionFile::json    ? "no text 'caption' in its .json"
                                            : captions_ == CaptionFile::table ? "no text in '" + table_place_ + "'"
                                                                              : "");
    const pictures::PictureSize size = picture.sample.size;
    const std::string shown = std::to_string(size.width) + " x " + std::to_string(size.height) + " pixels";
    if (!pictures::is_large_enough(size, dataset_)) return skip(SkipReason::below_minimum_size, shown);
    const double ratio = static_cast<double>(size.width) / static_cast<double>(size.height);
    if (ratio < dataset_.minimum_aspect_ratio || ratio > dataset_.maximum_aspect_ratio)
        return skip(SkipReason::outside_aspect_ratio, shown);
    return std::nullopt;
}

STRATA_INLINE Discovered Catalog::finish(const std::function<std::string(const std::string& key)>& where) {
    keep({{"listed", std::string{name_of(captions_)}}, {"decodes", pictures::decoded_formats()}});
    index_.reset();
    Discovered result;
    result.found = found();
    result.examined = to_examine();
    if (noted_ > 0)
        notes_.push_back("data set '" + dataset_.id + "': " + first_noted_ +
                         (noted_ > 1 ? "; and so with " + std::to_string(noted_ - 1) + " more" : ""));
    result.notes = std::move(notes_);
    result.samples.reserve(pictures_.size());
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
        IndexedPicture& picture = pictures_[i];
        if (captions_ == CaptionFile::none) {
            const bool by_name =
                !dataset_.only_instance_prompt && dataset_.caption_strategy == config::CaptionStrategy::filename;
            picture.sample.caption = by_name ? caption_from_name(picture.sample.key) : dataset_.instance_prompt;
            picture.sample.other_captions.clear();
        }
        if (std::optional<Skipped> skipped = judge(picture, i)) {
            skipped->place = where(picture.sample.key);
            result.skipped.push_back(std::move(*skipped));
        } else {
            result.samples.push_back(std::move(picture.sample));
        }
    }
    std::vector<IndexedPicture>{}.swap(pictures_);
    std::vector<std::string_view> keys;
    keys.reserve(result.samples.size());
    for (const Sample& sample : result.samples) keys.push_back(sample.key);
    const std::vector<std::size_t> chosen = chosen_samples(keys, dataset_.id, dataset_.max_num_samples);
    if (chosen.size() == result.samples.size()) return result;
    result.notes.push_back("data set '" + dataset_.id + "': " + std::to_string(chosen.size()) + " of " +
                           std::to_string(result.samples.size()) + " pictures are used (max_num_samples)");
    std::vector<Sample> kept;
    kept.reserve(chosen.size());
    for (const std::size_t i : chosen) kept.push_back(std::move(result.samples[i]));
    result.samples = std::move(kept);
    return result;
}

}  // namespace strata::datasets::detail
