#pragma once
// strata/config/impl/document_text.ipp - trees as text, and files as trees.

#include <algorithm>

#include <strata/config/detail/quoted.hpp>
#include <strata/config/document.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/text_checks.ipp>

namespace strata::config {

namespace detail {

/// A number as JSON has it: YAML's `.5`, `+1`, `5.` and infinities are none there.
inline std::string json_number(const std::string& text) {
    const double number = number_of(text).value_or(0);
    if (std::isinf(number)) return text.starts_with('-') ? "-Infinity" : "Infinity";
    const std::size_t first = text.starts_with('-') ? 1 : 0;
    const bool is_json = std::isdigit(static_cast<unsigned char>(text[first])) != 0 && text.back() != '.' &&
                         text.find(".e") == std::string::npos &&
                         !(text.size() > first + 1 && text[first] == '0' && std::isdigit(text[first + 1]) != 0);
    return is_json ? text : shown(number);
}

inline std::string json_scalar(const Node& node) {
    switch (node.kind()) {
        case NodeKind::null:
            return "null";
        case NodeKind::flag:
            return flag_of(node.scalar()).value_or(false) ? "true" : "false";
        case NodeKind::number:
            return json_number(node.scalar());
        default:
            return detail::quoted(node.scalar());
    }
}

/// As JSON, on one line (`indent` below 0) or on several.
inline void append_json(std::string& to, const Node& node, int indent) {
    const bool is_object = node.is(NodeKind::object);
    if (!is_object && !node.is(NodeKind::list)) {
        to += json_scalar(node);
        return;
    }
    const std::size_t count = is_object ? node.members().size() : node.elements().size();
    const bool scalars_only =
        !is_object && std::none_of(node.elements().begin(), node.elements().end(),
                                   [](const Node& one) { return one.is(NodeKind::list) || one.is(NodeKind::object); });
    const bool on_one_line = indent < 0 || count == 0 || scalars_only;
    const auto line = [&](int depth) {
        if (!on_one_line) to += "\n" + std::string(static_cast<std::size_t>(depth) * 2, ' ');
    };
    to += is_object ? '{' : '[';
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) to += on_one_line ? ", " : ",";
        line(indent + 1);
        if (is_object) to += detail::quoted(node.members()[i].key) + ": ";
        append_json(to, is_object ? node.members()[i].value : node.elements()[i], indent < 0 ? -1 : indent + 1);
    }
    line(indent);
    to += is_object ? '}' : ']';
}

/// Text that YAML, in its version 1.1 too, reads as that text without quotes.
inline bool is_plain_in_yaml(const std::string& text) {
    if (text.empty() || flag_of(text) || number_of(text) || text == "~" || text == "null" || text == "Null" ||
        text == "NULL" || text == "y" || text == "n" || text == "Y" || text == "N")
        return false;
    const bool known = std::all_of(text.begin(), text.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '/' || c == '.' ||
               c == '+';
    });
    return known && std::isdigit(static_cast<unsigned char>(text[0])) == 0 && text[0] != '-' && text[0] != '.' &&
           text[0] != '+';
}

inline std::string yaml_scalar(const Node& node) {
    if (node.is(NodeKind::number)) return node.scalar();
    if (node.is(NodeKind::text)) return is_plain_in_yaml(node.scalar()) ? node.scalar() : detail::quoted(node.scalar());
    return json_scalar(node);
}

/// A list or an object in block style, every line with its end.
inline void append_yaml(std::string& to, const Node& node, int indent) {
    const std::string margin(static_cast<std::size_t>(indent) * 2, ' ');
    const bool is_object = node.is(NodeKind::object);
    const std::size_t count = is_object ? node.members().size() : node.elements().size();
    for (std::size_t i = 0; i < count; ++i) {
        const Node& value = is_object ? node.members()[i].value : node.elements()[i];
        to += margin;
        if (is_object) {
            const std::string& key = node.members()[i].key;
            to += (is_plain_in_yaml(key) ? key : detail::quoted(key)) + ":";
        } else {
            to += "-";
        }
        const bool has_more = !value.members().empty() || !value.elements().empty();
        const bool is_scalar = !value.is(NodeKind::list) && !value.is(NodeKind::object);
        if (is_scalar) {
            to += " " + yaml_scalar(value) + "\n";
        } else if (!has_more) {
            to += value.is(NodeKind::list) ? " []\n" : " {}\n";
        } else {
            to += "\n";
            append_yaml(to, value, indent + 1);
        }
    }
}

}  // namespace detail

STRATA_INLINE std::string Node::shown() const {
    std::string text;
    if (kind_ == NodeKind::number || kind_ == NodeKind::flag)
        text = scalar_;
    else
        detail::append_json(text, *this, -1);
    if (text.size() <= 60) return text;
    std::size_t end = 57;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // whole characters
    return text.substr(0, end) + "...";
}

STRATA_INLINE std::string write_json(const Node& node) {
    std::string text;
    detail::append_json(text, node, 0);
    return text + "\n";
}

STRATA_INLINE std::string write_yaml(const Node& node) {
    if (node.is(NodeKind::object) && node.members().empty()) return "{}\n";
    if (node.is(NodeKind::list) && node.elements().empty()) return "[]\n";
    if (!node.is(NodeKind::object) && !node.is(NodeKind::list)) return detail::yaml_scalar(node) + "\n";
    std::string text;
    detail::append_yaml(text, node, 0);
    return text;
}

STRATA_INLINE Document load_document(const std::filesystem::path& file, JsonDialect dialect) {
    const std::string text = detail::read_text(file);
    const std::string extension = file.extension().string();
    if (extension == ".yaml" || extension == ".yml") return parse_yaml(text, file.string());
    const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    const bool is_json = extension == ".json" || (first != std::string::npos &&
                                                  (text[first] == '{' || text[first] == '[' || text[first] == '/'));
    return is_json ? parse_json(text, file.string(), dialect) : parse_yaml(text, file.string());
}

}  // namespace strata::config
