#pragma once
// strata/tables/impl/table_json_lines.ipp - one JSON object a line.

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/tables/detail/text_window.hpp>
#include <strata/tables/table.hpp>

namespace strata::tables::detail {

inline std::optional<std::int64_t> whole_number(const nlohmann::json& value) {
    if (value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0) return std::nullopt;
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (!value.is_number_float()) return std::nullopt;
    const double real = value.get<double>();
    constexpr double largest = 9e15;
    return std::abs(real) <= largest && real == std::floor(real) ? std::optional{static_cast<std::int64_t>(real)}
                                                                 : std::nullopt;
}

/// Fills the cell of a member. Returns what it should have been, or "" where it is right.
inline std::string_view fill_cell(TableCell& cell, const nlohmann::json& value, CellUse use) {
    const auto text_of = [](const nlohmann::json& from) {
        return std::string_view{from.get_ref<const std::string&>()};
    };
    if (use == CellUse::number) {
        cell.number = whole_number(value);
        return cell.number ? "" : "whole number";
    }
    if (use == CellUse::name && value.is_number_integer()) {
        cell.digits = value.dump();
        cell.texts.push_back(cell.digits);
        return "";
    }
    if (value.is_string()) {
        cell.texts.push_back(text_of(value));
        return "";
    }
    if (use == CellUse::name || !value.is_array()) return "text";
    for (const nlohmann::json& entry : value) {
        if (entry.is_null()) continue;
        if (!entry.is_string()) return "list of texts";
        cell.texts.push_back(text_of(entry));
    }
    return "";
}

inline void read_json_lines(const TableFile& file, const std::vector<TableColumn>& columns,
                            const std::function<void(std::span<const TableCell>)>& visit) {
    TextWindow lines{file};
    const auto bad = [&](const std::string& why) -> Error {
        return {Errc::bad_json_line, "line " + std::to_string(lines.number()) + " of table '" + file.place + "' " + why,
                "write one JSON object a line, as in {\"filename\": \"a.jpg\", \"caption\": \"a cat\"}"};
    };
    std::set<std::string> missing;
    for (const TableColumn& column : columns) missing.insert(column.name);
    std::string found;  // the members of the first object
    bool any = false;
    std::vector<TableCell> cells(columns.size());
    const auto next = [&] {
        return lines.next([](std::string_view) { return true; }, [&] { return bad("is longer than 16 MiB"); });
    };
    for (auto line = next(); line; line = next()) {
        if (!any) line = core::without_byte_order_mark(*line);
        if (core::trimmed(*line).empty()) continue;
        const nlohmann::json object = nlohmann::json::parse(*line, nullptr, false);
        if (line->find('\0') != std::string_view::npos) throw bad("holds a NUL byte");  // the parser's end
        if (!object.is_object()) throw bad("is no JSON object");
        if (!any)
            for (const auto& [name, value] : object.items()) found += (found.empty() ? "" : ", ") + name;
        any = true;
        for (std::size_t i = 0; i < columns.size(); ++i) {
            cells[i].texts.clear();
            cells[i].number.reset();
            const auto member = object.find(columns[i].name);
            if (member == object.end()) continue;
            missing.erase(columns[i].name);
            if (member->is_null()) continue;
            if (const std::string_view wanted = fill_cell(cells[i], *member, columns[i].use); !wanted.empty())
                throw wrong_cell(lines, file, columns[i].name, wanted);
        }
        visit(cells);
    }
    // A column that not a single line has is a wrong name.
    if (any && !missing.empty())
        throw Error{Errc::no_such_column,
                    "table '" + file.place + "' has no column '" + *missing.begin() + "'; its first line has " + found,
                    "name one of them"};
}

}  // namespace strata::tables::detail
