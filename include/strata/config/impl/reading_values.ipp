#pragma once
// strata/config/impl/reading_values.ipp - what a single key or value says by itself, before rows are held against it.

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/config/format_table.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/key.ipp>
#include <strata/config/intent.hpp>
#include <strata/config/key.hpp>

namespace strata::config {

namespace detail {

inline std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

/// 1 and 0 are true and false as well.
inline std::optional<bool> flag_in(const Node& node) {
    if (const auto number = node.number(); number && (*number == 0 || *number == 1)) return *number == 1;
    return node.flag();
}

/// The name that was probably meant: a few letters apart, or cut short or drawn out. Stricter than nearest_name(): where
/// strangers may stand as well, two short words are soon alike.
inline std::string_view probably_meant(std::string_view name, const std::vector<std::string_view>& known) {
    const std::string_view near = nearest_name(name, known);
    if (!near.empty() && edit_distance(name, near) <= std::max<std::size_t>(1, std::min(name.size(), near.size()) / 4))
        return near;
    for (const std::string_view one : known) {
        const std::string_view shorter = one.size() < name.size() ? one : name;
        const std::string_view longer = one.size() < name.size() ? name : one;
        if (shorter.size() >= 8 && longer.starts_with(shorter) && longer.size() - shorter.size() <= 5) return one;
    }
    return {};
}

/// People write remarks for each other as keys.
inline bool is_remark(std::string_view key) {
    return key.starts_with('_') || key.starts_with("//") || key.starts_with('#') || key == "comment" ||
           key == "comments" || key == "$schema";
}

/// Whether one of two places is within the other, or one of them is the top level: a key goes astray between these, not
/// from a block into its neighbour, whose numbers are about something else.
inline bool reaches(std::string_view one, std::string_view other) {
    const auto within = [](std::string_view inner, std::string_view outer) {
        return outer.empty() || (inner.starts_with(outer) && inner.size() > outer.size() && inner[outer.size()] == '.');
    };
    return within(one, other) || within(other, one);
}

inline bool is_scalar(const Node& node) { return !node.is(NodeKind::list) && !node.is(NodeKind::object); }

/// Whether the value asks for something else than the default.
inline bool asks(const Node& node, const KeyRow& row) {
    if (!is_scalar(node)) return !node.members().empty() || !node.elements().empty();
    if (!row.fallback.empty()) {
        if (const auto flag = flag_in(node); flag && flag_of(row.fallback)) return *flag != *flag_of(row.fallback);
        if (const auto number = node.number(); number && number_of(row.fallback))
            return *number != *number_of(row.fallback);
        return lower(node.scalar()) != lower(row.fallback);
    }
    return flag_in(node).value_or(!node.scalar().empty());
}

/// The object that was probably meant by a value in its place: {"enabled": true}, {"type": "AdamW"}.
inline std::string object_for(const Node& node, const KeyRow& row, const FormatTable& table) {
    const auto has = [&](const char* key) { return table.find(row.path + "." + key) != nullptr; };
    if (has("enabled") && flag_in(node)) return *flag_in(node) ? "{\"enabled\": true}" : "{\"enabled\": false}";
    if (has("type") && node.is(NodeKind::text)) return "{\"type\": " + node.shown() + "}";
    const auto names = table.names_in(row.path);
    return names.empty() ? "an object" : "an object: {\"" + std::string{names.front()} + "\": ...}";
}

inline OptionScalar scalar_in(const Node& node, ValueKind kind) {
    if (kind == ValueKind::flag) return flag_in(node).value_or(false);
    if (kind == ValueKind::whole) return node.whole().value_or(0);
    if (kind == ValueKind::number) return node.number().value_or(0);
    return node.scalar();
}

}  // namespace detail

}  // namespace strata::config
