#pragma once
// strata/tables/table.hpp - rows of a table in any of its formats: Parquet, JSON lines, CSV, in bounded memory.
//
//   .jsonl      one JSON object a line; numbers, texts, and lists of texts
//   .csv, .tsv  RFC 4180: a line with the names first; fields may stand in quotes, with "" for a quote, and then hold
//   line
//               ends; lines end in LF or CRLF; blank lines are none; an empty field is no value
//   others      Parquet (tables/parquet.hpp)
// Text is UTF-8, with or without a byte order mark. At most 16 MiB of text a row; a window of 1 MiB is read at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/tables/table_file.hpp>

namespace strata::tables {

enum class TableFormat : std::uint8_t { parquet, json_lines, csv, tsv };

/// By the end of its name.
[[nodiscard]] TableFormat table_format(std::string_view name) noexcept;

/// What is wanted of a column.
enum class CellUse : std::uint8_t {
    name,    ///< a text, or a whole number as its digits
    texts,   ///< any number of texts: a text is one of them, a list has as many as it has
    number,  ///< a whole number
};

struct TableColumn {
    std::string name;  ///< of Parquet as ParquetFile::find() takes it
    CellUse use = CellUse::texts;
};

/// What a row has in a column. Views live until the visit ends.
struct TableCell {
    std::vector<std::string_view> texts;  ///< of CellUse::name at most one
    std::optional<std::int64_t> number;
    std::string digits;  ///< what texts views where a name is a number
};

/// Calls visit(cells) for each row, in the file's order, with a cell for each column.
///
/// Throws Errc::no_such_column (with the names that there are), wrong_column_type, bad_json_line, bad_csv_line,
/// io_failed, and what ParquetFile and `visit` throw.
void read_rows(const TableFile& file, TableFormat format, const std::vector<TableColumn>& columns,
               const std::function<void(std::span<const TableCell>)>& visit);

}  // namespace strata::tables

#ifndef STRATA_COMPILED
#include <strata/tables/impl/table.ipp>
#endif
