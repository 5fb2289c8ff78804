#pragma once
// strata/tables/detail/parquet_rows.hpp - the rows of one column in one row group: a value each, or a list each.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <strata/tables/detail/parquet_column_reader.hpp>
#include <strata/tables/parquet_values.hpp>

namespace strata::tables::detail::parquet {

class RowReader {
public:
    virtual ~RowReader() = default;
    /// Rows that can be read before more has to be decoded, which it does where there are none: then what was read
    /// before is gone. At least 1 before the row group's end.
    virtual std::uint64_t rows_ready() = 0;
    /// The next `rows` rows, at most rows_ready().
    virtual void read(std::size_t rows, ParquetValues& out) = 0;
};

/// A column with one value a row.
class FlatRows final : public RowReader {
public:
    FlatRows(const File& file, std::size_t row_group, const Leaf& leaf, std::uint64_t first_row)
        : column_{file, row_group, leaf, first_row} {}
    std::uint64_t rows_ready() override { return column_.entries_in_page(); }
    void read(std::size_t rows, ParquetValues& out) override { column_.read(rows, out); }

private:
    ColumnReader column_;
};

/// A column of lists. Entries are decoded limits.batch_rows at a time; a list that goes on behind them, in another page
/// perhaps, waits for its end: its texts are copied, for they lie in a page that is overwritten.
class ListRows final : public RowReader {
public:
    ListRows(const File& file, std::size_t row_group, const Leaf& leaf, std::uint64_t first_row);
    std::uint64_t rows_ready() override;
    void read(std::size_t rows, ParquetValues& out) override;

private:
    void fill();
    void keep_unfinished();
    void add(std::size_t count);
    void begin_row(std::uint8_t definition);

    ColumnReader column_;
    const ParquetLimits& limits_;
    std::uint8_t entry_level_;
    std::uint64_t rows_left_;  // of the row group, not begun

    ParquetValues entries_;  // as they were decoded last
    EntryLevels levels_;

    // The rows that are decoded, the last one perhaps in part:
    std::vector<std::size_t> begins_;
    std::vector<std::uint8_t> lists_;
    std::vector<std::uint8_t> present_;
    std::vector<std::string_view> texts_;
    std::vector<std::uint64_t> numbers_;
    std::size_t ready_ = 0;  // of them complete
    std::size_t next_ = 0;   // of them to be read
    std::size_t kept_ = 0;   // entries in front whose texts are in kept_texts_
    std::uint64_t kept_bytes_ = 0;
    std::vector<std::vector<char>> kept_texts_;
};

[[nodiscard]] std::unique_ptr<RowReader> make_row_reader(const File& file, std::size_t row_group, const Leaf& leaf,
                                                         std::uint64_t first_row);

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_rows.ipp>
#endif
