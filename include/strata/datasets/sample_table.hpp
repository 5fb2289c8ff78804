#pragma once
// strata/datasets/sample_table.hpp - captions and sizes of pictures from the rows of a table: Parquet or JSON lines.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/dataset.hpp>
#include <strata/core/error.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/storage/object_store.hpp>
#include <strata/tables/parquet.hpp>

namespace strata::datasets {

/// What a row says of a picture.
struct TableRow {
    std::string key;                    ///< of the picture below its data set's folder
    pictures::PictureSize size;         ///< {0, 0}: the row has none, or it was not asked for
    std::vector<std::string> captions;  ///< without white space at their ends; none is empty
};

/// A file in which the rows are.
struct TableFile {
    tables::ParquetFile::ReadRange read;
    std::uint64_t size = 0;  ///< bytes
    std::string place;       ///< named in messages
};

/// A table in a store. `store` must live as long as the result. Throws Errc::bad_reference, and what the store throws.
template <storage::ObjectStore Store>
[[nodiscard]] TableFile table_file(const Store& store, std::string_view key) {
    const auto info = store.head(key);
    if (!info)
        throw Error{Errc::bad_reference, "there is no table '" + store.where(key) + "'",
                    "correct 'path' of the block parquet"};
    return {[&store, name = std::string{key}](std::uint64_t offset, std::uint64_t length) {
                return store.get_range(name, offset, length);
            },
            info->size, store.where(key)};
}

/// Calls visit(TableRow&&) for each row with a name, in the file's order. A name that ends in .jsonl is read as JSON
/// lines (one object a line), every other one as Parquet. Of both only a part is in memory at a time.
///
/// Captions: the columns of caption_column that have text; where none has, those of fallback_caption_column.
///
///   sizes, captions  which columns to read besides the names
///
/// Throws Errc::no_such_column (with the names that there are), wrong_column_type, bad_json_line, and what ParquetFile
/// throws.
void read_table(const TableFile& file, const config::ParquetColumns& columns, bool sizes, bool captions,
                const std::function<void(TableRow&&)>& visit);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/sample_table.ipp>
#endif
