#pragma once
// tools/table.hpp - Table: rows of text in aligned columns.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <strata/core/printable.hpp>

namespace strata::tools {

enum class Align : bool { left, right };

struct Column {
    std::string heading;
    Align align = Align::left;
};

/// Columns are as wide as their widest cell, counted in UTF-8 code points.
class Table {
public:
    explicit Table(std::vector<Column> columns) : columns_{std::move(columns)} {}

    /// A cell a column. Control characters are shown as escapes, so that a name from outside stays in its cell.
    void row(std::vector<std::string> cells) {
        for (std::string& cell : cells) cell = core::printable(cell);
        rows_.push_back(std::move(cells));
    }

    /// Heading and rows, each line behind `indent`; nothing if there is no row.
    [[nodiscard]] std::string text(std::string_view indent) const {
        if (rows_.empty()) return {};
        std::vector<std::string> headings;
        for (const Column& column : columns_) headings.push_back(column.heading);
        std::vector<std::vector<std::string>> lines{std::move(headings)};
        lines.insert(lines.end(), rows_.begin(), rows_.end());
        std::vector<std::size_t> widths(columns_.size(), 0);
        for (const auto& cells : lines)
            for (std::size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], width_of(cells[c]));
        std::string text;
        for (const auto& cells : lines) {
            std::string line{indent};
            for (std::size_t c = 0; c < cells.size(); ++c) {
                const std::string blanks(widths[c] - width_of(cells[c]), ' ');
                line += c == 0 ? "" : "  ";
                line += columns_[c].align == Align::right ? blanks + cells[c] : cells[c] + blanks;
            }
            line.erase(line.find_last_not_of(' ') + 1);
            text += line + "\n";
        }
        return text;
    }

private:
    static std::size_t width_of(std::string_view cell) {
        return static_cast<std::size_t>(std::count_if(
            cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
    }

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace strata::tools
