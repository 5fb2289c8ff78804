#pragma once
// strata/config/impl/format_schema.ipp - a table as a JSON Schema.

#include <cctype>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/config/format_table.hpp>
#include <strata/config/impl/document.ipp>
#include <strata/config/impl/format_table.ipp>

namespace strata::config {

namespace detail {

/// A pattern of these words in large and small letters: JSON Schema has no other way to say so.
inline std::string in_any_case(const std::vector<std::string>& words) {
    std::string pattern;
    for (const std::string& word : words) {
        pattern += pattern.empty() ? "^(" : "|";
        for (const char c : word) {
            const auto byte = static_cast<unsigned char>(c);
            if (std::isalpha(byte) != 0)
                pattern += std::string{"["} + static_cast<char>(std::toupper(byte)) +
                           static_cast<char>(std::tolower(byte)) + "]";
            else
                pattern += c;
        }
    }
    return pattern + ")$";
}

}  // namespace detail

STRATA_INLINE std::string json_schema(const FormatTable& table) {
    using Json = nlohmann::ordered_json;
    // A trainer's keys are read by its own schema, which is stricter about true and false.
    const bool is_trainers = table.name() == "Trainer";
    const auto of_row = [&](const KeyRow& row) {
        Json value = Json::object();
        const auto range = [&] {
            if (std::isfinite(row.range.least)) value["minimum"] = row.range.least;
            if (std::isfinite(row.range.most)) value["maximum"] = row.range.most;
        };
        switch (row.kind) {
            case ValueKind::flag:
                value["type"] = "boolean";
                break;
            case ValueKind::whole:
                value["type"] = "integer";  // 5e8 is one to JSON Schema
                range();
                if (!value.contains("maximum")) value["maximum"] = 9e18;  // what 64 bits keep
                if (!value.contains("minimum")) value["minimum"] = -9e18;
                break;
            case ValueKind::number:
                value["type"] = "number";
                range();
                break;
            case ValueKind::text:
                value["type"] = "string";
                break;
            case ValueKind::choice:
                value["enum"] = row.choices;
                if (row.any_case) value = Json{{"type", "string"}, {"pattern", detail::in_any_case(row.choices)}};
                break;
            case ValueKind::list:
                value["type"] = "array";
                break;
            case ValueKind::object:
                value["type"] = "object";
                break;
            case ValueKind::any:
                break;
        }
        return value;
    };
    const auto object_of = [&](const auto& self, std::string_view path) -> Json {
        Json properties = Json::object();
        Json others;
        for (const KeyRow& row : table.rows()) {
            if (row.parent() != path) continue;
            // An old name has what its new one has.
            const KeyRow* const newer = row.renamed.empty() ? &row : table.find(row.renamed);
            const ValueKind kind = newer->kind;
            Json value = kind == ValueKind::object ? self(self, newer->path) : of_row(*newer);
            Json options = Json::array();
            // As they are read: no value is as if the key were absent, "auto" is left to who runs it, text that is a number is
            // one, and true and false may be written 1 and 0, or as YAML 1.1 has them.
            const bool is_section = kind == ValueKind::object || kind == ValueKind::list;
            const bool is_open = !is_trainers && kind != ValueKind::any && kind != ValueKind::text && !is_section;
            const bool is_number = kind == ValueKind::whole || kind == ValueKind::number;
            if (is_open || newer->can_be_auto) options.push_back({{"const", "auto"}});
            if (kind != ValueKind::any) options.push_back({{"type", "null"}});
            if (newer->can_be_flag) options.push_back({{"type", "boolean"}});
            for (const std::string& choice : newer->choices)  // false and 2 are words as well
                if (const auto flag = detail::flag_of(choice); flag && (choice == "true" || choice == "false"))
                    options.push_back({{"const", *flag}});
                else if (const auto number = detail::number_of(choice))
                    options.push_back({{"const", *number}});
            if (is_trainers && kind == ValueKind::flag)
                options.push_back({{"enum", {"true", "false"}}});
            else if (kind == ValueKind::flag || newer->can_be_flag)
                options.push_back(
                    {{"enum", {0,     1,     "0",  "1",  "true", "True", "TRUE", "false", "False", "FALSE", "yes",
                               "Yes", "YES", "no", "No", "NO",   "on",   "On",   "ON",    "off",   "Off",   "OFF"}}});
            if (!is_trainers && kind == ValueKind::text) options.push_back({{"type", {"number", "boolean"}}});
            if (is_number) options.push_back({{"type", "string"}, {"pattern", "^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$"}});
            if (is_trainers && kind == ValueKind::list) options.push_back({{"type", "string"}});
            if (newer->can_be_list) options.push_back({{"type", "array"}});
            if (!options.empty()) {
                options.insert(options.begin(), std::move(value));
                value = Json{{"anyOf", std::move(options)}};
            }
            std::string about = row.meaning;
            about += (about.empty() ? "" : ". ") + ("strata: " + detail::doing(table, row));
            value["description"] = about;
            if (!row.renamed.empty()) value["deprecated"] = true;
            if (row.name() == "*")
                others = std::move(value);
            else
                properties[std::string{row.name()}] = std::move(value);
            if (is_trainers)  // as a command line has it
                properties["--" + std::string{row.name()}] = {{"$ref", "#/properties/" + std::string{row.name()}}};
        }
        Json object{{"type", "object"}};
        object["properties"] = std::move(properties);
        if (!others.is_null())
            object["additionalProperties"] = std::move(others);
        else if (table.is_strict(path))
            object["additionalProperties"] = false;
        return object;
    };
    Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                {"title", table.name() + " configuration"}};
    schema.update(object_of(object_of, ""));
    return schema.dump(2) + "\n";
}

}  // namespace strata::config
