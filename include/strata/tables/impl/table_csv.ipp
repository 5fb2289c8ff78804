#pragma once
// strata/tables/impl/table_csv.ipp - comma- or tab-separated rows (RFC 4180).

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/tables/detail/parquet_bytes.hpp>
#include <strata/tables/detail/text_window.hpp>
#include <strata/tables/table.hpp>

namespace strata::tables::detail {

/// A number without fraction, as table libraries write it: "640", "640.0".
inline std::optional<std::int64_t> whole_number(std::string_view text) {
    std::int64_t whole = 0;
    const char* const end = text.data() + text.size();
    if (const auto [at, error] = std::from_chars(text.data(), end, whole); error == std::errc{} && at == end)
        return whole;
    double real = 0;
    const auto [at, error] = std::from_chars(text.data(), end, real);
    constexpr double largest = 9e15;
    if (error != std::errc{} || at != end || !(std::abs(real) <= largest) || real != std::floor(real))
        return std::nullopt;
    return static_cast<std::int64_t>(real);
}

class CsvReader {
public:
    CsvReader(const TableFile& file, char delimiter) : file_{file}, lines_{file}, delimiter_{delimiter} {}

    /// The fields of the next row, quotes taken off; false after the last. Views live until the next call.
    bool next(std::vector<std::string_view>& fields) {
        while (true) {
            bool in_quotes = false;
            std::optional<std::string_view> line =
                lines_.next([&](std::string_view part) { return !(in_quotes = ends_in_quotes(part, in_quotes)); },
                            [&] { return bad("is longer than 16 MiB"); });
            if (!line) return false;
            if (is_first_) line = core::without_byte_order_mark(*line);
            is_first_ = false;
            if (line->ends_with('\r')) line->remove_suffix(1);
            if (core::trimmed(*line).empty() && line->find(delimiter_) == std::string_view::npos) continue;
            if (line->find('\0') != std::string_view::npos) throw bad("holds a NUL byte");
            if (!parquet::is_utf8(*line)) throw bad("is not UTF-8");
            split(*line, fields);
            return true;
        }
    }
    [[nodiscard]] Error bad(const std::string& why) const {
        return {
            Errc::bad_csv_line, "line " + std::to_string(lines_.number()) + " of table '" + file_.place + "' " + why,
            "write a field that holds the delimiter, a quote or a line end in quotes, with \"\" for each quote in it"};
    }
    [[nodiscard]] Error wrong(const std::string& column, std::string_view wanted) const {
        return wrong_cell(lines_, file_, column, wanted);
    }

private:
    /// True if a part between line ends ends inside of a quoted field. A field is quoted if a quote is its first
    /// letter.
    [[nodiscard]] bool ends_in_quotes(std::string_view part, bool in_quotes) const {
        if (is_first_ && !in_quotes) part = core::without_byte_order_mark(part);
        bool at_begin = true;  // of a field
        for (std::size_t i = 0; i < part.size(); ++i) {
            if (in_quotes) {
                if (part[i] != '"') continue;
                if (i + 1 < part.size() && part[i + 1] == '"')
                    ++i;
                else
                    in_quotes = at_begin = false;
            } else {
                in_quotes = at_begin && part[i] == '"';
                at_begin = part[i] == delimiter_;
            }
        }
        return in_quotes;
    }

    void split(std::string_view line, std::vector<std::string_view>& fields) {
        fields.clear();
        unquoted_.clear();
        unquoted_.reserve(line.size());  // so that views into it stay
        for (std::size_t at = 0; at <= line.size();) {
            if (at < line.size() && line[at] == '"') {
                const std::size_t begin = unquoted_.size();
                bool is_closed = false;
                for (++at; at < line.size(); ++at) {
                    if (line[at] == '"') {
                        if (at + 1 == line.size() || line[at + 1] != '"') {
                            is_closed = true;
                            ++at;
                            break;
                        }
                        ++at;
                    }
                    unquoted_ += line[at];
                }
                if (!is_closed) throw bad("begins a quoted field that does not end");
                if (at < line.size() && line[at] != delimiter_) throw bad("goes on behind the end of a quoted field");
                fields.push_back(std::string_view{unquoted_}.substr(begin));
            } else {
                const std::size_t end = std::min(line.find(delimiter_, at), line.size());
                fields.push_back(line.substr(at, end - at));
                at = end;
            }
            ++at;
        }
    }

    const TableFile& file_;
    TextWindow lines_;
    char delimiter_;
    bool is_first_ = true;
    std::string unquoted_;
};

inline void read_csv(const TableFile& file, char delimiter, const std::vector<TableColumn>& columns,
                     const std::function<void(std::span<const TableCell>)>& visit) {
    CsvReader reader{file, delimiter};
    std::vector<std::string_view> fields;
    if (!reader.next(fields)) return;
    std::string found;
    std::vector<std::string> names;
    for (const std::string_view field : fields) {
        names.emplace_back(core::trimmed(field));
        found += (found.empty() ? "" : ", ") + names.back();
    }
    std::vector<std::size_t> places;
    for (const TableColumn& column : columns) {
        const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), column.name) - names.begin());
        if (at == names.size())
            throw Error{Errc::no_such_column,
                        "table '" + file.place + "' has no column '" + column.name + "'; its first line has " + found,
                        "name one of them"};
        if (std::count(names.begin(), names.end(), column.name) > 1)
            throw Error{Errc::no_such_column, "table '" + file.place + "' has two columns '" + column.name + "'",
                        "rename one of them"};
        places.push_back(at);
    }
    std::vector<TableCell> cells(columns.size());
    while (reader.next(fields)) {
        if (fields.size() != names.size())
            throw reader.bad("has " + std::to_string(fields.size()) + " fields, and the first line has " +
                             std::to_string(names.size()));
        for (std::size_t i = 0; i < columns.size(); ++i) {
            cells[i].texts.clear();
            cells[i].number.reset();
            const std::string_view field = fields[places[i]];
            if (field.empty()) continue;
            cells[i].texts.push_back(field);
            if (columns[i].use != CellUse::number) continue;
            cells[i].number = whole_number(core::trimmed(field));
            if (!cells[i].number) throw reader.wrong(columns[i].name, "whole number");
        }
        visit(cells);
    }
}

}  // namespace strata::tables::detail
