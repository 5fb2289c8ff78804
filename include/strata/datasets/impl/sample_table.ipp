#pragma once
// strata/datasets/impl/sample_table.ipp - rows of Parquet files and of JSON lines.

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include <strata/core/inline.hpp>
#include <strata/core/text.hpp>
#include <strata/datasets/sample_table.hpp>

namespace strata::datasets {

namespace detail {

/// Which columns are read, each once, and which of them is what.
struct TableColumns {
    std::vector<std::string> names;
    std::size_t key;
    std::optional<std::size_t> width;
    std::optional<std::size_t> height;
    std::vector<std::size_t> captions;
    std::vector<std::size_t> fallbacks;
    bool keys_have_extension;

    TableColumns(const config::ParquetColumns& columns, bool sizes, bool with_captions)
        : key{add(columns.filename_column)}, keys_have_extension{columns.identifier_includes_extension} {
        if (sizes) {
            width = add(columns.width_column);
            height = add(columns.height_column);
        }
        if (!with_captions) return;
        for (const std::string& name : columns.caption_column) captions.push_back(add(name));
        for (const std::string& name : columns.fallback_caption_column) fallbacks.push_back(add(name));
    }

    /// The row, from functions that give the text and the number in a column.
    template <class Text, class Number>
    [[nodiscard]] TableRow row(std::string name, const Text& text, const Number& number) const {
        TableRow row;
        row.key = std::move(name);
        if (!keys_have_extension) row.key += ".png";
        if (width) row.size = {number(*width).value_or(0), number(*height).value_or(0)};
        if (row.size.width < 1 || row.size.height < 1) row.size = {};
        for (const std::vector<std::size_t>* const some : {&captions, &fallbacks}) {
            if (!row.captions.empty()) break;
            for (const std::size_t column : *some) {
                std::string caption{core::trimmed(text(column).value_or(std::string_view{}))};
                if (!caption.empty()) row.captions.push_back(std::move(caption));
            }
        }
        return row;
    }

private:
    std::size_t add(const std::string& name) {
        const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
        if (at == names.size()) names.push_back(name);
        return at;
    }
};

inline void read_parquet_table(const TableFile& file, const TableColumns& columns,
                               const std::function<void(TableRow&&)>& visit) {
    const tables::ParquetFile parquet{file.read, file.size, file.place};
    std::vector<tables::ParquetRequest> request;
    for (std::size_t i = 0; i < columns.names.size(); ++i) {
        const bool is_number = columns.width == i || columns.height == i;
        // Names may be numbers: some data sets call their pictures so.
        request.push_back({columns.names[i], i == columns.key ? std::nullopt
                                             : is_number      ? std::optional{tables::ParquetKind::integer}
                                                              : std::optional{tables::ParquetKind::text}});
    }
    for (tables::ParquetBatches batches = parquet.read(request); batches.next();) {
        const tables::ParquetValues& keys = batches.column(columns.key);
        for (std::size_t r = 0; r < batches.rows(); ++r) {
            std::string name;
            if (keys.kind() == tables::ParquetKind::integer) {
                if (const auto number = keys.integer(r)) name = std::to_string(*number);
            } else if (const auto text = keys.text(r)) {
                name = *text;
            }
            if (name.empty()) continue;
            visit(columns.row(
                std::move(name), [&](std::size_t c) { return batches.column(c).text(r); },
                [&](std::size_t c) { return batches.column(c).integer(r); }));
        }
    }
}

/// The lines of a file, read a window at a time.
class Lines {
public:
    explicit Lines(const TableFile& file) : file_{file} {}

    /// The next line without its end; nothing after the last. The view lives until the next call.
    [[nodiscard]] std::optional<std::string_view> next() {
        ++number_;
        std::size_t end = buffer_.find('\n', begin_);
        while (end == std::string::npos && offset_ < file_.size) {
            buffer_.erase(0, begin_);
            begin_ = 0;
            const std::size_t before = buffer_.size();
            if (before > longest) throw too_long();
            const std::vector<std::byte> more =
                file_.read(offset_, std::min<std::uint64_t>(window, file_.size - offset_));
            if (more.empty())
                throw Error{Errc::io_failed, "table '" + file_.place + "' ended before its size", "start again"};
            buffer_.append(reinterpret_cast<const char*>(more.data()), more.size());
            offset_ += more.size();
            end = buffer_.find('\n', before);
        }
        if (begin_ == buffer_.size()) return std::nullopt;
        if (end == std::string::npos) end = buffer_.size();
        if (end - begin_ > longest) throw too_long();
        const std::string_view line = std::string_view{buffer_}.substr(begin_, end - begin_);
        begin_ = std::min(end + 1, buffer_.size());
        return line;
    }

    [[nodiscard]] Error bad(const std::string& why) const {
        return {Errc::bad_json_line, "line " + std::to_string(number_) + " of table '" + file_.place + "' " + why,
                "write one JSON object a line, as in {\"filename\": \"a.jpg\", \"caption\": \"a cat\"}"};
    }
    [[nodiscard]] Error bad_type(const std::string& column, std::string_view wanted) const {
        return {Errc::wrong_column_type,
                "line " + std::to_string(number_) + " of table '" + file_.place + "' has no " + std::string{wanted} +
                    " in '" + column + "'",
                "write " + std::string{wanted} + " or null there, or name another column"};
    }

private:
    [[nodiscard]] Error too_long() const { return bad("is longer than 16 MiB"); }

    static constexpr std::uint64_t window = 1 << 20;
    static constexpr std::size_t longest = 16 << 20;
    const TableFile& file_;
    std::string buffer_;
    std::size_t begin_ = 0;     // of the next line in the buffer
    std::uint64_t offset_ = 0;  // in the file, behind the buffer
    std::uint64_t number_ = 0;  // of the line, from 1
};

inline std::optional<std::int64_t> whole_number(const nlohmann::json& value) {
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (!value.is_number_float()) return std::nullopt;
    const double real = value.get<double>();
    constexpr double largest = 9e15;
    return std::abs(real) <= largest && real == std::floor(real) ? std::optional{static_cast<std::int64_t>(real)}
                                                                 : std::nullopt;
}

inline void read_json_lines(const TableFile& file, const TableColumns& columns,
                            const std::function<void(TableRow&&)>& visit) {
    std::set<std::string> missing(columns.names.begin(), columns.names.end());
    std::string found;  // the members of the first object
    bool any = false;
    Lines lines{file};
    for (auto line = lines.next(); line; line = lines.next()) {
        if (!any && line->starts_with("\xEF\xBB\xBF")) line->remove_prefix(3);
        if (core::trimmed(*line).empty()) continue;
        const nlohmann::json object = nlohmann::json::parse(*line, nullptr, false);
        if (line->find('\0') != std::string_view::npos) throw lines.bad("holds a NUL byte");  // the parser's end
        if (!object.is_object()) throw lines.bad("is no JSON object");
        if (!any)
            for (const auto& [name, value] : object.items()) found += (found.empty() ? "" : ", ") + name;
        any = true;
        const auto member = [&](std::size_t column) -> const nlohmann::json* {
            const auto at = object.find(columns.names[column]);
            if (at == object.end()) return nullptr;
            missing.erase(columns.names[column]);
            return at->is_null() ? nullptr : &*at;
        };
        const auto text = [&](std::size_t column) -> std::optional<std::string_view> {
            const nlohmann::json* const value = member(column);
            if (value == nullptr) return std::nullopt;
            if (!value->is_string()) throw lines.bad_type(columns.names[column], "text");
            return value->get_ref<const std::string&>();
        };
        const auto number = [&](std::size_t column) -> std::optional<std::int64_t> {
            const nlohmann::json* const value = member(column);
            if (value == nullptr) return std::nullopt;
            const std::optional<std::int64_t> whole = whole_number(*value);
            if (!whole) throw lines.bad_type(columns.names[column], "whole number");
            return whole;
        };
        std::string name;
        if (const nlohmann::json* const value = member(columns.key); value != nullptr && value->is_number_integer())
            name = std::to_string(value->get<std::int64_t>());
        else
            name = text(columns.key).value_or(std::string_view{});
        for (std::size_t c = 0; c < columns.names.size(); ++c) (void)member(c);
        if (!name.empty()) visit(columns.row(std::move(name), text, number));
    }
    // A column that not a single line has is a wrong name.
    if (any && !missing.empty())
        throw Error{Errc::no_such_column,
                    "table '" + file.place + "' has no column '" + *missing.begin() + "'; its first line has " + found,
                    "name one of them"};
}

}  // namespace detail

STRATA_INLINE void read_table(const TableFile& file, const config::ParquetColumns& columns, bool sizes, bool captions,
                              const std::function<void(TableRow&&)>& visit) {
    const detail::TableColumns wanted{columns, sizes, captions};
    if (columns.path.ends_with(".jsonl"))
        detail::read_json_lines(file, wanted, visit);
    else
        detail::read_parquet_table(file, wanted, visit);
}

}  // namespace strata::datasets
