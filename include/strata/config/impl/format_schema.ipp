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
                if (row.any_case)
                    value["type"] = "string";
                else
                    value["enum"] = row.choices;
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
            if (row.can_be_auto) options.push_back({{"const", "auto"}});
            if (row.can_be_flag) options.push_back({{"type", "boolean"}});
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
