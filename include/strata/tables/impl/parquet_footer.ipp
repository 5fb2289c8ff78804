#pragma once
// strata/tables/impl/parquet_footer.ipp - the schema in depth-first order, then row groups that must match it.
//
// Field numbers are those of parquet.thrift: FileMetaData, SchemaElement, RowGroup, ColumnChunk, ColumnMetaData.

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include <strata/tables/detail/parquet_footer.hpp>
#include <strata/tables/detail/thrift_reader.hpp>

namespace strata::tables::detail::parquet {

/// What a column's values mean, of ConvertedType and LogicalType together.
enum class Meaning : std::uint8_t { plain, utf8, decimal, unsigned_integer, float16, uuid, interval };

struct SchemaElement {
    std::int32_t type = -1;  // -1: a group
    std::int32_t width = 0;
    std::int32_t repetition = 0;
    std::int32_t children = 0;
    std::int32_t scale = 0;
    std::string_view name;
    Meaning meaning = Meaning::plain;
};

inline Meaning meaning_of_converted_type(std::int32_t number) noexcept {
    if (number == 0 || number == 4 || number == 19) return Meaning::utf8;  // UTF8, ENUM, JSON
    if (number == 5) return Meaning::decimal;
    if (number >= 11 && number <= 14) return Meaning::unsigned_integer;
    if (number == 21) return Meaning::interval;
    return Meaning::plain;
}

/// The union LogicalType. Numbers of later versions of the format mean nothing.
inline void read_logical_type(ThriftReader& in, ThriftReader::Type type, SchemaElement& element) {
    using Field = ThriftReader::Field;
    in.record(type, [&](Field kind) {
        switch (kind.id) {
            case 1:
            case 4:
            case 12:
                element.meaning = Meaning::utf8;
                return false;  // STRING, ENUM, JSON
            case 5:
                element.meaning = Meaning::decimal;
                in.record(kind.type, [&](Field field) {
                    if (field.id != 1) return false;
                    element.scale = in.int32(field.type);
                    return true;
                });
                return true;
            case 10:
                in.record(kind.type, [&](Field field) {
                    if (field.id != 2) return false;
                    element.meaning = in.boolean(field.type) ? Meaning::plain : Meaning::unsigned_integer;
                    return true;
                });
                return true;
            case 14:
                element.meaning = Meaning::uuid;
                return false;
            case 15:
                element.meaning = Meaning::float16;
                return false;
            default:
                return false;
        }
    });
}

inline SchemaElement read_schema_element(ThriftReader& in) {
    SchemaElement element;
    in.record([&](ThriftReader::Field field) {
        switch (field.id) {
            case 1:
                element.type = in.int32(field.type);
                return true;
            case 2:
                element.width = in.int32(field.type);
                return true;
            case 3:
                element.repetition = in.int32(field.type);
                return true;
            case 4:
                element.name = in.text(field.type);
                return true;
            case 5:
                element.children = in.int32(field.type);
                return true;
            case 6:
                element.meaning = meaning_of_converted_type(in.int32(field.type));
                return true;
            case 7:
                element.scale = in.int32(field.type);
                return true;
            case 10:
                read_logical_type(in, field.type, element);
                return true;
            default:
                return false;
        }
    });
    if (element.children < 0) in.place().damaged("its schema has a group of " + std::to_string(element.children));
    if (element.type >= 0 && element.children > 0)
        in.place().damaged("its schema has an element that is a group and a column at once");
    return element;
}

/// Why a flat column cannot be read; "" if it can.
inline std::string refusal_of(const SchemaElement& element) {
    if (element.type < 0) return "it is nested: a list, map or struct";
    if (element.repetition != 0 && element.repetition != 1) return "it is repeated: a list";
    switch (static_cast<PhysicalType>(element.type)) {
        case PhysicalType::int96:
            return "its type is INT96, a time stamp of old writers";
        case PhysicalType::boolean:
        case PhysicalType::float32:
        case PhysicalType::float64:
            return "";
        case PhysicalType::int32:
        case PhysicalType::int64:
            if (element.meaning == Meaning::decimal && (element.scale < 0 || element.scale > 18))
                return "its scale as a decimal is " + std::to_string(element.scale);
            return "";
        case PhysicalType::fixed:
            if (element.width < 1) return "its values have " + std::to_string(element.width) + " bytes";
            [[fallthrough]];
        case PhysicalType::byte_array:
            if (element.meaning == Meaning::decimal) return "it holds decimal numbers kept as bytes";
            if (element.meaning == Meaning::float16) return "it holds 16-bit floating point numbers";
            if (element.meaning == Meaning::interval) return "it holds intervals of time";
            if (element.meaning == Meaning::uuid) return "it holds UUIDs kept as bytes";
            return "";
    }
    return "its type has the unknown number " + std::to_string(element.type);
}

inline ColumnFormat format_of(const SchemaElement& element) {
    ColumnFormat format;
    format.type = static_cast<PhysicalType>(element.type);
    format.optional = element.repetition == 1;
    format.is_unsigned = element.meaning == Meaning::unsigned_integer;
    switch (format.type) {
        case PhysicalType::int32:
        case PhysicalType::float32:
            format.width = 4;
            break;
        case PhysicalType::int64:
        case PhysicalType::float64:
            format.width = 8;
            break;
        case PhysicalType::fixed:
            format.width = static_cast<std::uint32_t>(element.width);
            break;
        default:
            break;
    }
    const bool is_integer = format.type == PhysicalType::int32 || format.type == PhysicalType::int64;
    if (is_integer && element.meaning == Meaning::decimal) format.scale = element.scale;
    format.is_utf8 = element.meaning == Meaning::utf8 && format.type == PhysicalType::byte_array;
    return format;
}

inline ParquetKind kind_of(const ColumnFormat& format) noexcept {
    switch (format.type) {
        case PhysicalType::boolean:
            return ParquetKind::boolean;
        case PhysicalType::int32:
        case PhysicalType::int64:
            return format.scale >= 0 ? ParquetKind::real : ParquetKind::integer;
        case PhysicalType::float32:
        case PhysicalType::float64:
            return ParquetKind::real;
        default:
            return ParquetKind::text;
    }
}

class FooterParser {
public:
    FooterParser(std::span<const std::byte> bytes, const Place& place) : in_{bytes, place}, place_{place} {}

    Footer parse() {
        in_.record([&](Field field) {
            switch (field.id) {
                case 2:
                    if (seen_schema_) place_.damaged("its footer has two schemas");
                    seen_schema_ = true;
                    in_.list(field.type, Type::record, [&] { add(read_schema_element(in_)); });
                    finish_schema();
                    return true;
                case 4:
                    if (!seen_schema_ || seen_groups_) place_.damaged("its footer has row groups out of order");
                    seen_groups_ = true;
                    in_.list(field.type, Type::record, [&] { read_row_group(); });
                    return true;
                default:
                    return false;
            }
        });
        if (!seen_schema_ || !seen_groups_) place_.damaged("its footer has no schema or no row groups");
        return std::move(footer_);
    }

private:
    using Field = ThriftReader::Field;
    using Type = ThriftReader::Type;
    static constexpr std::uint32_t nested = std::numeric_limits<std::uint32_t>::max();
    static constexpr std::size_t most_columns = 65536;
    static constexpr std::size_t most_row_groups = 65536;

    void add(const SchemaElement& element) {
        if (!seen_root_) {
            seen_root_ = true;
            if (element.type >= 0) place_.damaged("the root of its schema is a column");
            top_level_left_ = element.children;
            return;
        }
        if (subtree_left_ > 0) {  // inside a nested column: only its leaves matter, they have chunks
            subtree_left_ += element.children - 1;
            if (element.type >= 0) columns_of_leaves_.push_back(nested);
            return;
        }
        if (top_level_left_-- <= 0) place_.damaged("its schema has more elements than its groups say");
        subtree_left_ = element.children;
        if (footer_.columns.size() == most_columns)
            place_.unsupported("it has more than " + std::to_string(most_columns) + " columns");
        if (element.type >= 0) columns_of_leaves_.push_back(static_cast<std::uint32_t>(footer_.columns.size()));
        ParquetColumn& column = footer_.columns.emplace_back();
        column.name = element.name;
        column.refusal = refusal_of(element);
        ColumnFormat& format = footer_.formats.emplace_back();
        const std::size_t chunk = element.type >= 0 ? flat_columns_++ : 0;
        if (!column.refusal.empty()) return;
        format = format_of(element);
        format.chunk = chunk;
        column.kind = kind_of(format);
        column.nullable = format.optional;
    }

    void finish_schema() {
        if (!seen_root_ || top_level_left_ != 0 || subtree_left_ != 0)
            place_.damaged("its schema has fewer elements than its groups say");
        std::unordered_set<std::string_view> names;
        std::unordered_set<std::string_view> twice;
        for (const ParquetColumn& column : footer_.columns)
            if (!names.insert(column.name).second) twice.insert(column.name);
        for (ParquetColumn& column : footer_.columns)
            if (twice.contains(column.name)) column.refusal = "its name stands in the schema twice";
    }

    void read_row_group() {
        if (footer_.groups.size() == most_row_groups)
            place_.unsupported("it has more than " + std::to_string(most_row_groups) + " row groups");
        RowGroup& group = footer_.groups.emplace_back();
        group.chunks.reserve(flat_columns_);
        std::size_t leaf = 0;
        std::int64_t rows = -1;
        in_.record([&](Field field) {
            switch (field.id) {
                case 1:
                    in_.list(field.type, Type::record, [&] {
                        if (leaf == columns_of_leaves_.size()) wrong_chunks();
                        read_chunk(group, columns_of_leaves_[leaf++]);
                    });
                    return true;
                case 3:
                    rows = in_.int64(field.type);
                    return true;
                default:
                    return false;
            }
        });
        if (leaf != columns_of_leaves_.size()) wrong_chunks();
        if (rows < 0) place_.damaged("a row group has no number of rows");
        group.rows = static_cast<std::uint64_t>(rows);
        if (__builtin_add_overflow(footer_.rows, group.rows, &footer_.rows)) place_.damaged("it has too many rows");
    }

    void read_chunk(RowGroup& group, std::uint32_t column) {
        Chunk chunk;
        std::int64_t dictionary = 0;
        bool has_metadata = false;
        in_.record([&](Field field) {
            switch (field.id) {
                case 1:
                    chunk.elsewhere = !in_.text(field.type).empty();
                    return true;
                case 3:
                    has_metadata = true;
                    in_.record(field.type,
                               [&](Field part) { return read_chunk_part(part, chunk, dictionary, column); });
                    return true;
                case 8:
                case 9:
                    chunk.encrypted = true;
                    return false;
                default:
                    return false;
            }
        });
        if (!has_metadata && !chunk.encrypted) place_.damaged("a column chunk is not described");
        // Some writers say 0 where there is no dictionary, some never say where it is: then it stands at the front.
        if (dictionary > 0 && dictionary < chunk.begin) chunk.begin = dictionary;
        if (column == nested) return;
        const bool complete = chunk.codec >= 0 && chunk.values >= 0 && chunk.begin >= 0 && chunk.size >= 0;
        if (!complete && !chunk.encrypted) place_.damaged("a column chunk is not described as a whole");
        group.chunks.push_back(chunk);
    }

    bool read_chunk_part(Field field, Chunk& chunk, std::int64_t& dictionary, std::uint32_t column) {
        switch (field.id) {
            case 1:
                chunk.type = in_.int32(field.type);
                return true;
            case 3:
                check_path(field.type, column);
                return true;
            case 4:
                chunk.codec = in_.int32(field.type);
                return true;
            case 5:
                chunk.values = in_.int64(field.type);
                return true;
            case 7:
                chunk.size = in_.int64(field.type);
                return true;
            case 9:
                chunk.begin = in_.int64(field.type);
                return true;
            case 11:
                dictionary = in_.int64(field.type);
                return true;
            default:
                return false;
        }
    }

    void check_path(Type type, std::uint32_t column) {
        int parts = 0;
        in_.list(type, Type::binary, [&] {
            const std::string_view part = in_.text(Type::binary);
            if (column != nested && (parts++ > 0 || part != footer_.columns[column].name)) wrong_chunks();
        });
    }

    [[noreturn]] void wrong_chunks() const { place_.damaged("a row group's columns are not those of the schema"); }

    ThriftReader in_;
    const Place& place_;
    Footer footer_;
    std::vector<std::uint32_t> columns_of_leaves_;  // the top-level column of each leaf, or `nested`
    std::size_t flat_columns_ = 0;
    bool seen_schema_ = false;
    bool seen_groups_ = false;
    bool seen_root_ = false;
    std::int64_t top_level_left_ = 0;
    std::int64_t subtree_left_ = 0;
};

STRATA_INLINE Footer parse_footer(std::span<const std::byte> bytes, const Place& place) {
    return FooterParser{bytes, place}.parse();
}

}  // namespace strata::tables::detail::parquet
