#pragma once
// strata/config/impl/json_of_node.ipp - a node as the JSON library has it, for schemas.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/config/document.hpp>
#include <strata/config/problems.hpp>
#include <strata/core/error.hpp>

namespace strata::config::detail {

inline bool is_kept(const nlohmann::json& json) { return !json.is_number_float() || std::isfinite(json.get<double>()); }

/// Numbers that no computer keeps are problems, and left out of lists and objects.
inline nlohmann::json json_of(const Node& node, Problems& problems) {
    switch (node.kind()) {
        case NodeKind::null:
            return nullptr;
        case NodeKind::flag:
            return node.flag().value_or(false);
        case NodeKind::text:
            return node.scalar();
        case NodeKind::number: {
            const std::string& text = node.scalar();
            std::int64_t whole = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
            if (error == std::errc{} && end == text.data() + text.size()) return whole;
            const double number = node.number().value_or(std::nan(""));
            if (!std::isfinite(number))
                problems.add({Errc::bad_value,
                              node.place() + ": " + (node.path().empty() ? "the number" : "key '" + node.path() + "'") +
                                  " is " + node.shown() + ", which is larger than any number a computer keeps",
                              "write a number between -1.7e308 and 1.7e308"});
            return number;
        }
        case NodeKind::list: {
            nlohmann::json list = nlohmann::json::array();
            for (const Node& element : node.elements())
                if (nlohmann::json json = json_of(element, problems); is_kept(json)) list.push_back(std::move(json));
            return list;
        }
        case NodeKind::object:
            break;
    }
    nlohmann::json object = nlohmann::json::object();
    for (const Node::Member& member : node.members())
        if (nlohmann::json json = json_of(member.value, problems); is_kept(json)) object[member.key] = std::move(json);
    return object;
}
/// Throws Errc::bad_value for numbers that no computer keeps.
inline nlohmann::json json_of(const Node& node) {
    Problems problems;
    nlohmann::json json = json_of(node, problems);
    problems.finish();
    return json;
}

/// Of a whole document: what its reader refuses is a problem as well, a key that stands twice.
inline nlohmann::json json_of(const Document& document, Problems& problems) {
    for (const Remark& remark : document.remarks)
        if (remark.refused)
            problems.add({Errc::bad_value,
                          document.source + ":" + std::to_string(remark.mark.line) + ":" +
                              std::to_string(remark.mark.column) + ": " + remark.what,
                          remark.fix});
    return json_of(document.root, problems);
}
/// Throws Errc::bad_value with all of these problems.
inline nlohmann::json json_of(const Document& document) {
    Problems problems;
    nlohmann::json json = json_of(document, problems);
    problems.finish();
    return json;
}

}  // namespace strata::config::detail
