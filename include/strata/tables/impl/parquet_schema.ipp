#pragma once
// strata/tables/impl/parquet_schema.ipp - the schema's elements in depth-first order become a tree of columns.
//
// Field numbers are those of parquet.thrift: SchemaElement, LogicalType. Lists: LogicalTypes.md, "Nested Types".

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

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

STRATA_INLINE void Schema::add(ThriftReader& in) {
    SchemaNode node = read_schema_node(in);
    const Place& place = in.place();
    if (!seen_root_) {
        seen_root_ = true;
        if (node.type >= 0) place.damaged("the root of its schema is a column");
        root_left_ = node.children;
        return;
    }
    if ((open_.empty() ? root_left_ : open_.back().second)-- <= 0)
        place.damaged("its schema has more elements than its groups say");
    if (nodes_.size() == most_nodes) place.unsupported("it has more than " + std::to_string(most_nodes) + " columns");
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    node.parent = open_.empty() ? index : open_.back().first;
    node.depth = static_cast<std::uint32_t>(open_.size());
    node.leaf = static_cast<std::uint32_t>(leaves_.size());
    if (open_.empty()) top_level_.push_back(index);
    if (node.type >= 0) leaves_.push_back(index);
    open_.emplace_back(index, node.children);
    nodes_.push_back(std::move(node));
    while (!open_.empty() && open_.back().second == 0) {
        nodes_[open_.back().first].end = static_cast<std::uint32_t>(nodes_.size());
        open_.pop_back();
    }
}

STRATA_INLINE void Schema::finish(const Place& place) {
    if (!seen_root_ || root_left_ != 0 || !open_.empty())
        place.damaged("its schema has fewer elements than its groups say");
    columns_.reserve(top_level_.size());
    for (const std::uint32_t node : top_level_) columns_.push_back(describe(node).column);
    std::unordered_map<std::string_view, std::size_t> names;
    for (std::size_t i = 0; i < columns_.size(); ++i)
        if (const auto [at, is_new] = names.emplace(columns_[i].name, i); !is_new)
            columns_[at->second].refusal = columns_[i].refusal = "its name stands in the schema twice";
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

/// The node that has a list's values, of one that is annotated as a list; else, and of other lists, the node itself.
STRATA_INLINE std::uint32_t Schema::element_of(std::uint32_t node) const {
    const SchemaNode& list = nodes_[node];
    if (list.type >= 0 || list.meaning != Meaning::list || list.children != 1) return node;
    const SchemaNode& repeated = nodes_[node + 1];
    if (repeated.repetition != 2) return node;
    // Written by rule, the repeated group has one child, the element. Old writers made it the element itself.
    return repeated.type < 0 && repeated.children == 1 ? node + 2 : node + 1;
}

STRATA_INLINE std::string Schema::name_of(std::uint32_t leaf_node) const {
    std::string path = nodes_[leaf_node].name;
    for (std::uint32_t at = leaf_node; nodes_[at].depth > 0;) {
        at = nodes_[at].parent;
        path = nodes_[at].name + "." + path;
    }
    return path;
}

/// What can be read of a node: its values, those of its list, or nothing.
STRATA_INLINE Leaf Schema::describe(std::uint32_t node) const {
    Leaf found;
    found.column.name = nodes_[node].name;
    const std::uint32_t value = element_of(node);
    const SchemaNode& leaf = nodes_[value];
    if (leaf.type < 0) {
        found.column.refusal = "it is nested: a struct, a map, or a list of those";
        if (leaf.leaf < leaves_.size() && leaves_[leaf.leaf] < leaf.end &&
            nodes_[leaves_[leaf.leaf]].depth <= most_depth)
            found.column.refusal += "; name a column in it, as in '" + shown(name_of(leaves_[leaf.leaf])) + "'";
        return found;
    }
    int repeated = 0;
    ColumnFormat levels;
    for (std::uint32_t at = value;; at = nodes_[at].parent) {
        const SchemaNode& step = nodes_[at];
        if (step.repetition < 0 || step.repetition > 2) {
            found.column.refusal = "its repetition has the unknown number " + std::to_string(step.repetition);
            return found;
        }
        if (step.repetition != 0) ++levels.definition_levels;
        if (step.repetition == 2) {
            ++repeated;
            levels.entry_level = levels.definition_levels;  // counted from below for now
        }
        if (step.depth == 0) break;
    }
    if (repeated > 1) {
        found.column.refusal = "it is nested: a list of lists";
        return found;
    }
    found.column.refusal = refusal_of(leaf);
    if (!found.column.refusal.empty()) return found;
    found.format = format_of(leaf);
    found.format.chunk = leaf.leaf;
    found.format.definition_levels = levels.definition_levels;
    found.format.is_list = repeated == 1;
    if (repeated == 1)
        found.format.entry_level = static_cast<std::uint8_t>(levels.definition_levels - levels.entry_level + 1);
    found.column.kind = kind_of(found.format);
    found.column.is_list = found.format.is_list;
    found.column.nullable = found.format.definition_levels > repeated;
    return found;
}

STRATA_INLINE void Schema::search(std::uint32_t first, std::uint32_t end, std::string_view path,
                                  std::vector<std::uint32_t>& found) const {
    for (std::uint32_t at = first; at < end && found.size() < 2; at = nodes_[at].end) {
        const SchemaNode& node = nodes_[at];
        if (node.depth > most_depth || !path.starts_with(node.name)) continue;
        if (path.size() == node.name.size()) {
            found.push_back(at);
        } else if (path[node.name.size()] == '.') {
            const std::string_view rest = path.substr(node.name.size() + 1);
            const std::size_t before = found.size();
            search(at + 1, node.end, rest, found);
            const std::uint32_t element = element_of(at);
            if (found.size() == before && element > at + 1) search(element + 1, nodes_[element].end, rest, found);
        }
    }
}

STRATA_INLINE Leaf Schema::find(std::string_view name) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i].name != name) continue;
        Leaf leaf = describe(top_level_[i]);
        leaf.column.refusal = columns_[i].refusal;  // its name may stand there twice
        return leaf;
    }
    std::vector<std::uint32_t> found;
    search(0, static_cast<std::uint32_t>(nodes_.size()), name, found);
    Leaf leaf;
    leaf.format.chunk = leaves_.size();
    if (found.empty()) return leaf;
    leaf = describe(found.front());
    leaf.column.name = name;
    if (found.size() > 1) leaf.column.refusal = "its name stands in the schema twice";
    return leaf;
}

STRATA_INLINE bool Schema::is_path(std::size_t leaf, const std::vector<std::string_view>& path) const {
    std::uint32_t at = leaves_[leaf];
    if (nodes_[at].depth > most_depth || path.empty()) return true;
    if (path.size() != nodes_[at].depth + 1) return false;
    for (std::size_t part = path.size(); part-- > 0; at = nodes_[at].parent)
        if (nodes_[at].name != path[part]) return false;
    return true;
}

}  // namespace strata::tables::detail::parquet
