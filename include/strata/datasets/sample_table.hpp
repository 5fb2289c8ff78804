#pragma once
// strata/datasets/sample_table.hpp - what the rows of a table say of pictures: captions and sizes.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/dataset.hpp>
#include <strata/core/error.hpp>
#include <strata/pictures/picture.hpp>
#include <strata/storage/object_store.hpp>
#include <strata/tables/table.hpp>

namespace strata::datasets {

/// What a row says of a picture.
struct TableRow {
    std::string key;                    ///< of the picture below its data set's folder
    pictures::PictureSize size;         ///< {0, 0}: the row has none, or it was not asked for
    std::vector<std::string> captions;  ///< without white space at their ends; none is empty
};

/// A table in a store. `store` must live as long as the result. Throws Errc::bad_reference, and what the store throws.
template <storage::ObjectStore Store>
[[nodiscard]] tables::TableFile table_file(const Store& store, std::string_view key) {
    const auto info = store.head(key);
    if (!info)
        throw Error{Errc::bad_reference, "there is no table '" + store.where(key) + "'",
                    "correct 'path' of the block parquet"};
    return {[&store, name = std::string{key}](std::uint64_t offset, std::uint64_t length) {
                return store.get_range(name, offset, length);
            },
            info->size, store.where(key)};
}

/// Calls visit(TableRow&&) for each row with a name, in the file's order; the end of columns.path says the format
/// (tables::table_format()). Only a part of the file is in memory at a time.
///
/// Captions: what the columns of caption_column have, all entries where they are lists; where none has text, that of
/// fallback_caption_column.
///
///   sizes, captions  which columns to read besides the names
///
/// Throws what tables::read_rows() throws.
void read_table(const tables::TableFile& file, const config::ParquetColumns& columns, bool sizes, bool captions,
                const std::function<void(TableRow&&)>& visit);

}  // namespace strata::datasets

#ifndef STRATA_COMPILED
#include <strata/datasets/impl/sample_table.ipp>
#endif
