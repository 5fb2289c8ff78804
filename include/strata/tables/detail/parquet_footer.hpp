#pragma once
// strata/tables/detail/parquet_footer.hpp - what a Parquet file's footer says: columns, row groups, column chunks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <strata/tables/detail/parquet_bytes.hpp>
#include <strata/tables/detail/parquet_schema.hpp>

namespace strata::tables::detail::parquet {

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
    std::vector<Chunk> chunks;  ///< one for each leaf of the schema
};

struct Footer {
    Schema schema;
    std::vector<RowGroup> groups;
    std::uint64_t rows = 0;
};

/// Parses a footer (the record FileMetaData). Memory is at most 15 times its bytes and a few MiB.
///
/// Throws Errc::corrupt_parquet, unsupported_parquet (more than 65,536 columns, groups of columns or row groups as
/// well).
[[nodiscard]] Footer parse_footer(std::span<const std::byte> bytes, const Place& place);

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_footer.ipp>
#endif
