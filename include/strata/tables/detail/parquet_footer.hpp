#pragma once
// strata/tables/detail/parquet_footer.hpp - what a Parquet file's footer says: columns, row groups, column chunks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <strata/tables/detail/parquet_bytes.hpp>
#include <strata/tables/parquet_values.hpp>

namespace strata::tables::detail::parquet {

/// Parquet's own types, by their numbers in the file.
enum class PhysicalType : std::uint8_t {
    boolean = 0,
    int32 = 1,
    int64 = 2,
    int96 = 3,
    float32 = 4,
    float64 = 5,
    byte_array = 6,
    fixed = 7,
};

/// How the values of a flat column lie in its pages.
struct ColumnFormat {
    PhysicalType type = PhysicalType::byte_array;
    std::uint32_t width = 0;  ///< bytes of a value; 0: byte_array, and boolean, which has bits
    std::size_t chunk = 0;    ///< index into RowGroup::chunks
    bool optional = false;    ///< there are definition levels, 0 or 1
    bool is_utf8 = false;
    bool is_unsigned = false;
    int scale = -1;  ///< of a decimal: value = stored number / 10^scale; -1: no decimal
};

/// The pages of one column in one row group, as the footer has them: unchecked, a reader of the column checks.
struct Chunk {
    std::int32_t type = -1;
    std::int32_t codec = -1;
    std::int64_t values = -1;  ///< with nulls
    std::int64_t begin = -1;   ///< offset in the file of the first page
    std::int64_t size = -1;    ///< packed bytes of all pages with their headers
    bool encrypted = false;
    bool elsewhere = false;  ///< in another file
};

struct RowGroup {
    std::uint64_t rows = 0;
    std::vector<Chunk> chunks;  ///< one for each top-level column that is no group
};

struct Footer {
    std::vector<ParquetColumn> columns;
    std::vector<ColumnFormat> formats;  ///< one for each column; of refused ones without meaning
    std::vector<RowGroup> groups;
    std::uint64_t rows = 0;
};

/// Parses a footer (the record FileMetaData). Memory is at most 15 times its bytes and a few MiB.
///
/// Throws Errc::corrupt_parquet, unsupported_parquet (more than 65,536 columns or row groups as well).
[[nodiscard]] Footer parse_footer(std::span<const std::byte> bytes, const Place& place);

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_footer.ipp>
#endif
