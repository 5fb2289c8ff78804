#pragma once
// strata/tables/detail/parquet_schema.hpp - the columns of a Parquet file: its schema as a tree, and how a leaf lies.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/tables/detail/parquet_bytes.hpp>
#include <strata/tables/detail/thrift_reader.hpp>
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

/// What stored bytes become before a program sees them.
enum class Form : std::uint8_t {
    as_stored,
    decimal,  ///< bytes with the high one first, two's complement
    float16,
    time96,  ///< nanoseconds of a day, then the Julian day
    uuid,
};

/// How the values of a leaf lie in its pages.
struct ColumnFormat {
    PhysicalType type = PhysicalType::byte_array;
    Form form = Form::as_stored;
    std::uint32_t width = 0;             ///< bytes of a value; 0: byte_array, and boolean, which has bits
    std::size_t chunk = 0;               ///< index into RowGroup::chunks
    std::uint8_t definition_levels = 0;  ///< a value is there where the definition level is this
    std::uint8_t entry_level = 0;        ///< of a list: at this definition level and above it has an entry
    bool is_list = false;                ///< there are repetition levels, 0 (a row begins) or 1
    bool is_utf8 = false;
    bool is_unsigned = false;
    int scale = -1;  ///< of a decimal: value = stored number / 10^scale; -1: no decimal

    [[nodiscard]] bool has_levels() const noexcept { return definition_levels > 0; }
    /// Values come as texts first, whatever they become.
    [[nodiscard]] bool is_read_as_text() const noexcept {
        return type == PhysicalType::byte_array || type == PhysicalType::fixed || type == PhysicalType::int96;
    }
};

/// What a column's values mean, of ConvertedType and LogicalType together.
enum class Meaning : std::uint8_t { plain, utf8, decimal, unsigned_integer, float16, uuid, interval, list, map };

/// A group or a column of the schema. They lie in depth-first order; the root is left out.
struct SchemaNode {
    std::string name;
    std::int32_t type = -1;  ///< -1: a group
    std::int32_t width = 0;
    std::int32_t repetition = 0;  ///< 0 required, 1 optional, 2 repeated
    std::int32_t children = 0;
    std::int32_t scale = 0;
    Meaning meaning = Meaning::plain;
    std::uint32_t parent = 0;
    std::uint32_t end = 0;   ///< first node behind those inside of it
    std::uint32_t leaf = 0;  ///< number of the column, of a group that of its first
    std::uint32_t depth = 0;
};

/// A column that can be asked for, and how it is read; `format` is without meaning where column.refusal is not empty.
struct Leaf {
    ParquetColumn column;
    ColumnFormat format;
};

class Schema {
public:
    static constexpr std::size_t most_nodes = 65536;
    static constexpr std::uint32_t most_depth = 64;  ///< columns that lie deeper are not found

    /// Adds an element of the file's list, the root first. Throws Errc::corrupt_parquet, unsupported_parquet.
    void add(ThriftReader& in);
    /// Checks that the tree is whole, and describes its top level.
    void finish(const Place& place);

    [[nodiscard]] const std::vector<ParquetColumn>& columns() const noexcept { return columns_; }
    [[nodiscard]] std::size_t leaves() const noexcept { return leaves_.size(); }

    /// The column with a name: one of the top level, or one inside of groups by its path with dots between, where the
    /// groups that only make a list may be left out: "meta.captions.list.element" is "meta.captions". chunk == leaves()
    /// if there is none.
    [[nodiscard]] Leaf find(std::string_view name) const;

    /// True if `path`, parts from the top down, is that of a leaf. Of leaves that are too deep to be found always.
    [[nodiscard]] bool is_path(std::size_t leaf, const std::vector<std::string_view>& path) const;

private:
    [[nodiscard]] std::string name_of(std::uint32_t leaf_node) const;
    [[nodiscard]] Leaf describe(std::uint32_t node) const;
    [[nodiscard]] std::uint32_t element_of(std::uint32_t node) const;
    void search(std::uint32_t first, std::uint32_t end, std::string_view path, std::vector<std::uint32_t>& found) const;

    std::vector<SchemaNode> nodes_;
    std::vector<std::uint32_t> leaves_;     // nodes
    std::vector<std::uint32_t> top_level_;  // nodes, as columns_
    std::vector<ParquetColumn> columns_;
    std::vector<std::pair<std::uint32_t, std::int64_t>> open_;  // groups that are not whole, and children they lack
    std::int64_t root_left_ = -1;
    bool seen_root_ = false;
};

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_schema.ipp>
#endif
