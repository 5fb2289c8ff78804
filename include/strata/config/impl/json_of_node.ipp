#pragma once
// strata/config/impl/json_of_node.ipp - a node as the JSON library has it, for schemas.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <system_error>

#include <nlohmann/json.hpp>

#include <strata/config/document.hpp>
#include <strata/config/findings.hpp>
#include <strata/core/error.hpp>

namespace strata::config::detail {

/// Throws Errc::bad_value for a number that no computer keeps.
inline nlohmann::json json_of(const Node& node) {
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
                throw Error{Errc::bad_value,
                            node.place() + ": " + (node.path().empty() ? "the number" : "key '" + node.path() + "'") +
                                " is " + node.shown() + ", which is larger than any number a computer keeps",
                            "write a number between -1.7e308 and 1.7e308"};
            return number;
        }
        case NodeKind::list: {
            nlohmann::json list = nlohmann::json::array();
            for (const Node& element : node.elements()) list.push_back(json_of(element));
            return list;
        }
        case NodeKind::object:
            break;
    }
    nlohmann::json object = nlohmann::json::object();
    for (const Node::Member& member : node.members()) object[member.key] = json_of(member.value);
    return object;
}

/// Of a whole document. Throws Errc::bad_value for what its reader refuses as well: a key that stands twice.
inline nlohmann::json json_of(const Document& document) {
    Findings noticed;
    noticed.take(document);
    noticed.throw_if_refused();
    return json_of(document.root);
}

}  // namespace strata::config::detail
