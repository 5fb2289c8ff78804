#pragma once
// strata/datasets/impl/catalog_table.ipp - sizes and captions of a data set that come from a table.

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/detail/catalog.hpp>
#include <strata/pictures/decode_image.hpp>

namespace strata::datasets::detail {

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

}  // namespace strata::datasets::detail
