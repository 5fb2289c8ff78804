#pragma once
// strata/tables/impl/parquet_rows.ipp - entries become lists, by their levels (Dremel, Melnik 2010, section 4.1).

#include <algorithm>
#include <string>

#include <strata/core/error.hpp>
#include <strata/core/inline.hpp>
#include <strata/tables/detail/parquet_rows.hpp>

namespace strata::tables::detail::parquet {

STRATA_INLINE ListRows::ListRows(const File& file, std::size_t row_group, const Leaf& leaf, std::uint64_t first_row)
    : column_{file, row_group, leaf, first_row},
      limits_{file.limits},
      entry_level_{leaf.format.entry_level},
      rows_left_{file.footer.groups[row_group].rows} {
    entries_.set_kind(leaf.column.kind);
}

STRATA_INLINE std::uint64_t ListRows::rows_ready() {
    while (next_ == ready_) fill();
    return ready_ - next_;
}

STRATA_INLINE void ListRows::read(std::size_t rows, ParquetValues& out) {
    const std::size_t first = begins_[next_];
    const std::size_t end = next_ + rows < begins_.size() ? begins_[next_ + rows] : present_.size();
    const auto copy = [](const auto& from, std::size_t begin, std::size_t behind, auto& to) {
        to.assign(from.begin() + static_cast<std::ptrdiff_t>(begin),
                  from.begin() + static_cast<std::ptrdiff_t>(behind));
    };
    copy(present_, first, end, out.present());
    copy(texts_, std::min(first, texts_.size()), std::min(end, texts_.size()), out.texts());
    copy(numbers_, std::min(first, numbers_.size()), std::min(end, numbers_.size()), out.numbers());
    copy(lists_, next_, next_ + rows, out.lists());
    copy(begins_, next_, next_ + rows, out.begins());
    for (std::size_t& begin : out.begins()) begin -= first;
    out.begins().push_back(end - first);
    next_ += rows;
}

STRATA_INLINE void ListRows::fill() {
    keep_unfinished();
    const std::uint64_t window = std::max<std::size_t>(limits_.batch_rows, 1);
    const auto count = static_cast<std::size_t>(std::min(column_.entries_in_page(), window));
    if (count == 0)
        column_.place().damaged("its pages end " + std::to_string(rows_left_) + " rows before the row group does");
    column_.read(count, entries_, &levels_);
    add(count);
    ready_ = begins_.size() - (column_.entries_left() > 0 ? 1 : 0);
}

STRATA_INLINE void ListRows::keep_unfinished() {
    const std::size_t begin = ready_ < begins_.size() ? begins_[ready_] : present_.size();
    const auto drop = [](auto& from, std::size_t count) {
        from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(std::min(count, from.size())));
    };
    if (ready_ > 0) {
        drop(begins_, ready_);
        drop(lists_, ready_);
        drop(present_, begin);
        drop(texts_, begin);
        drop(numbers_, begin);
        for (std::size_t& at : begins_) at -= begin;
        kept_texts_.clear();
        kept_ = 0;
        kept_bytes_ = 0;
        ready_ = next_ = 0;
    }
    std::uint64_t bytes = 0;
    for (std::size_t i = kept_; i < texts_.size(); ++i) bytes += texts_[i].size();
    kept_bytes_ += bytes;
    if (kept_bytes_ > limits_.page_bytes)
        column_.place().too_large("the list of a row", kept_bytes_, limits_.page_bytes, "page_bytes");
    if (bytes > 0) {
        std::vector<char>& kept = kept_texts_.emplace_back(static_cast<std::size_t>(bytes));
        char* next = kept.data();
        for (; kept_ < texts_.size(); ++kept_) {
            char* const text = next;
            next = std::copy(texts_[kept_].begin(), texts_[kept_].end(), next);
            texts_[kept_] = {text, static_cast<std::size_t>(next - text)};
        }
    }
    kept_ = present_.size();
}

STRATA_INLINE void ListRows::begin_row(std::uint8_t definition) {
    if (rows_left_ == 0) column_.place().damaged("it has more lists than the row group has rows");
    --rows_left_;
    begins_.push_back(present_.size());
    lists_.push_back(definition + 1 >= entry_level_ ? 1 : 0);  // one below: it is there, and empty
}

STRATA_INLINE void ListRows::add(std::size_t count) {
    const bool is_text = entries_.kind() == ParquetKind::text;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint8_t definition = levels_.definition[i];
        if (levels_.repetition[i] == 0) {
            begin_row(definition);
        } else if (begins_.empty() || definition < entry_level_ || begins_.back() == present_.size()) {
            column_.place().damaged("an entry of a list follows none");
        }
        if (definition < entry_level_) continue;
        present_.push_back(entries_.present()[i]);
        if (is_text)
            texts_.push_back(entries_.texts()[i]);
        else
            numbers_.push_back(entries_.numbers()[i]);
        if (present_.size() - begins_.back() > limits_.list_entries)
            throw Error{Errc::parquet_too_large,
                        column_.place().text() + ": a row has more than the " + std::to_string(limits_.list_entries) +
                            " entries that ParquetLimits::list_entries allows",
                        "write shorter lists, or raise the limit if the file is yours"};
    }
}

STRATA_INLINE std::unique_ptr<RowReader> make_row_reader(const File& file, std::size_t row_group, const Leaf& leaf,
                                                         std::uint64_t first_row) {
    if (leaf.format.is_list) return std::make_unique<ListRows>(file, row_group, leaf, first_row);
    return std::make_unique<FlatRows>(file, row_group, leaf, first_row);
}

}  // namespace strata::tables::detail::parquet
