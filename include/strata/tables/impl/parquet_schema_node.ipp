#pragma once
// strata/tables/impl/parquet_schema_node.ipp - one element of the schema, and what its values are to a reader.
//
// Field numbers are those of parquet.thrift: SchemaElement, LogicalType.

#include <string>

#include <strata/core/inline.hpp>
#include <strata/tables/detail/parquet_schema.hpp>

namespace strata::tables::detail::parquet {

inline Meaning meaning_of_converted_type(std::int32_t number) noexcept {
    if (number == 0 || number == 4 || number == 19) return Meaning::utf8;  // UTF8, ENUM, JSON
    if (number == 1 || number == 2) return Meaning::map;                   // MAP, MAP_KEY_VALUE
    if (number == 3) return Meaning::list;
    if (number == 5) return Meaning::decimal;
    if (number >= 11 && number <= 14) return Meaning::unsigned_integer;
    if (number == 21) return Meaning::interval;
    return Meaning::plain;
}

/// The union LogicalType. Numbers of later versions of the format mean nothing.
inline void read_logical_type(ThriftReader& in, ThriftReader::Type type, SchemaNode& node) {
    using Field = ThriftReader::Field;
    in.record(type, [&](Field kind) {
        switch (kind.id) {
            case 1:
            case 4:
            case 12:
                node.meaning = Meaning::utf8;
                return false;  // STRING, ENUM, JSON
            case 2:
                node.meaning = Meaning::map;
                return false;
            case 3:
                node.meaning = Meaning::list;
                return false;
            case 5:
                node.meaning = Meaning::decimal;
                in.record(kind.type, [&](Field field) {
                    if (field.id != 1) return false;
                    node.scale = in.int32(field.type);
                    return true;
                });
                return true;
            case 10:
                in.record(kind.type, [&](Field field) {
                    if (field.id != 2) return false;
                    node.meaning = in.boolean(field.type) ? Meaning::plain : Meaning::unsigned_integer;
                    return true;
                });
                return true;
            case 14:
                node.meaning = Meaning::uuid;
                return false;
            case 15:
                node.meaning = Meaning::float16;
                return false;
            default:
                return false;
        }
    });
}

inline SchemaNode read_schema_node(ThriftReader& in) {
    SchemaNode node;
    in.record([&](ThriftReader::Field field) {
        switch (field.id) {
            case 1:
                node.type = in.int32(field.type);
                return true;
            case 2:
                node.width = in.int32(field.type);
                return true;
            case 3:
                node.repetition = in.int32(field.type);
                return true;
            case 4:
                node.name = in.text(field.type);
                return true;
            case 5:
                node.children = in.int32(field.type);
                return true;
            case 6:
                node.meaning = meaning_of_converted_type(in.int32(field.type));
                return true;
            case 7:
                node.scale = in.int32(field.type);
                return true;
            case 10:
                read_logical_type(in, field.type, node);
                return true;
            default:
                return false;
        }
    });
    if (node.children < 0) in.place().damaged("its schema has a group of " + std::to_string(node.children));
    if (node.type >= 0 && node.children > 0)
        in.place().damaged("its schema has an element that is a group and a column at once");
    return node;
}

/// Why a leaf's values cannot be read; "" if they can.
inline std::string refusal_of(const SchemaNode& node) {
    constexpr int most_digits = 38;
    const bool is_decimal = node.meaning == Meaning::decimal;
    const auto wrong_scale = [&](int most) -> std::string {
        if (!is_decimal || (node.scale >= 0 && node.scale <= most)) return "";
        return "its scale as a decimal is " + std::to_string(node.scale);
    };
    switch (static_cast<PhysicalType>(node.type)) {
        case PhysicalType::boolean:
        case PhysicalType::int96:
        case PhysicalType::float32:
        case PhysicalType::float64:
            return "";
        case PhysicalType::int32:
        case PhysicalType::int64:
            return wrong_scale(18);
        case PhysicalType::fixed:
            if (node.width < 1) return "its values have " + std::to_string(node.width) + " bytes";
            if (is_decimal && node.width > 16) return "it holds decimal numbers of more than 38 digits";
            if (node.meaning == Meaning::float16 && node.width != 2) return "its 16-bit numbers have not 2 bytes";
            if (node.meaning == Meaning::uuid && node.width != 16) return "its UUIDs have not 16 bytes";
            [[fallthrough]];
        case PhysicalType::byte_array:
            if (node.meaning == Meaning::interval) return "it holds intervals of time";
            return wrong_scale(most_digits);
    }
    return "its type has the unknown number " + std::to_string(node.type);
}

inline ColumnFormat format_of(const SchemaNode& node) {
    ColumnFormat format;
    format.type = static_cast<PhysicalType>(node.type);
    format.is_unsigned = node.meaning == Meaning::unsigned_integer;
    switch (format.type) {
        case PhysicalType::int32:
        case PhysicalType::float32:
            format.width = 4;
            break;
        case PhysicalType::int64:
        case PhysicalType::float64:
            format.width = 8;
            break;
        case PhysicalType::int96:
            format.width = 12;
            format.form = Form::time96;
            break;
        case PhysicalType::fixed:
            format.width = static_cast<std::uint32_t>(node.width);
            break;
        default:
            break;
    }
    const bool is_real = format.type == PhysicalType::float32 || format.type == PhysicalType::float64;
    if (node.meaning == Meaning::decimal && !is_real && format.type != PhysicalType::boolean &&
        format.type != PhysicalType::int96) {
        format.scale = node.scale;
        if (format.is_read_as_text()) format.form = Form::decimal;
    }
    if (format.type == PhysicalType::fixed) {
        if (node.meaning == Meaning::float16) format.form = Form::float16;
        if (node.meaning == Meaning::uuid) format.form = Form::uuid;
    }
    format.is_utf8 = node.meaning == Meaning::utf8 && format.type == PhysicalType::byte_array;
    return format;
}

inline ParquetKind kind_of(const ColumnFormat& format) noexcept {
    switch (format.type) {
        case PhysicalType::boolean:
            return ParquetKind::boolean;
        case PhysicalType::int96:
            return ParquetKind::integer;
        case PhysicalType::int32:
        case PhysicalType::int64:
            return format.scale >= 0 ? ParquetKind::real : ParquetKind::integer;
        case PhysicalType::float32:
        case PhysicalType::float64:
            return ParquetKind::real;
        default:
            return format.form == Form::decimal || format.form == Form::float16 ? ParquetKind::real : ParquetKind::text;
    }
}

}  // namespace strata::tables::detail::parquet
