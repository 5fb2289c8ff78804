#pragma once
// strata/config/impl/format_schema.ipp - a table as a JSON Schema.

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include <strata/config/format_table.hpp>
#include <strata/config/impl/format_table.ipp>

namespace strata::config {

STRATA_INLINE std::string json_schema(const FormatTable& table) {
    using Json = nlohmann::ordered_json;
    const bool is_read_so = table.name() == "DeepSpeed" || table.name() == "Accelerate";
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
                if (row.any_case) value = Json{{"anyOf", {value, {{"type", "string"}}}}};
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
            Json value = row.kind == ValueKind::object ? self(self, row.path) : of_row(row);
            Json options = Json::array();
            // As Reading takes them: no value is as if the key were absent, "auto" is left to who runs it, and true and
            // false may be written 1 and 0, or as YAML 1.1 has them.
            const bool is_open = is_read_so && row.kind != ValueKind::any && row.kind != ValueKind::text;
            if (is_open || row.can_be_auto) options.push_back({{"const", "auto"}});
            if (is_read_so && row.kind != ValueKind::any) options.push_back({{"type", "null"}});
            const bool is_flag = row.kind == ValueKind::flag;
            if (row.can_be_flag) options.push_back({{"type", "boolean"}});
            if (is_read_so && (is_flag || row.can_be_flag))
                options.push_back({{"enum", {0, 1, "true", "false", "True", "False", "yes", "no", "on", "off"}}});
            if (is_read_so && row.kind == ValueKind::text) options.push_back({{"type", {"number", "boolean"}}});
            if (is_read_so && (row.kind == ValueKind::whole || row.kind == ValueKind::number))  // text that is a number
                options.push_back({{"type", "string"}, {"pattern", "^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$"}});
            if (row.can_be_list) options.push_back({{"type", "array"}});
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
