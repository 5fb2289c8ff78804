#pragma once
// strata/tables/impl/parquet_schema.ipp - the schema's elements in depth-first order become a tree of columns.
//
// Lists: github.com/apache/parquet-format, LogicalTypes.md, "Nested Types".

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include <strata/core/inline.hpp>
#include <strata/tables/detail/parquet_schema.hpp>
#include <strata/tables/impl/parquet_schema_node.ipp>

namespace strata::tables::detail::parquet {

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
