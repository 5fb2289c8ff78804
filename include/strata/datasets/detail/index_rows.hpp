#pragma once
// strata/datasets/detail/index_rows.hpp - the rows of an index: how a picture stands in its table.

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sqlite3.h>

#include <strata/core/crc32c.hpp>
#include <strata/datasets/byte_fields.hpp>
#include <strata/datasets/detail/sqlite_statement.hpp>
#include <strata/datasets/indexed_picture.hpp>
#include <strata/datasets/sample_fields.hpp>

namespace strata::datasets::detail::index {

inline constexpr int application_id = 0x73747261;  // "stra"
// user_version. 1 knew no contents, and is begun anew; 2 is in no release; others are set aside.
inline constexpr int format = 3;
inline constexpr int earlier_format = 1;

/// Calls visit(column, member) for all that is known of a picture.
template <class MaybeConstPicture, class Visit>
void each_column(MaybeConstPicture& picture, const Visit& visit) {
    each_field(picture.sample, visit);
    visit("size_source", picture.size_source);
    visit("size_fault", picture.size_fault);
    visit("caption_source", picture.caption_source);
    visit("decoded", picture.decoded);
    visit("pixel_fault", picture.pixel_fault);
}

using Fault = std::unique_ptr<PictureFault>;
using Texts = std::vector<std::string>;

// What SQL calls a member; a fault is three columns.
inline std::string declared(const std::string& name, const std::string&) { return name + " TEXT NOT NULL"; }
inline std::string declared(const std::string& name, std::integral auto) { return name + " INTEGER NOT NULL"; }
inline std::string declared(const std::string& name, const storage::ContentHash&) { return name + " BLOB"; }
inline std::string declared(const std::string& name, const Texts&) { return name + " BLOB"; }
inline std::string declared(const std::string& name, const Fault&) {
    return name + " INTEGER, " + name + "_detail TEXT, " + name + "_damaged INTEGER";
}

/// The columns as SQL has them: their declarations, their names, and a '?' for each.
struct Columns {
    std::string declarations;
    std::string names;
    std::string places;
};
inline const Columns& columns() {
    static const Columns all = [] {
        Columns columns;
        const IndexedPicture none;
        const auto add = [](std::string& list, const std::string& one) { list += (list.empty() ? "" : ", ") + one; };
        each_column(none, [&](const std::string& name, const auto& member) {
            add(columns.declarations, declared(name, member) + (name == "key" ? " PRIMARY KEY" : ""));
            const bool is_fault = std::same_as<std::remove_cvref_t<decltype(member)>, Fault>;
            add(columns.names, is_fault ? name + ", " + name + "_detail, " + name + "_damaged" : name);
            add(columns.places, is_fault ? "?, ?, ?" : "?");
        });
        return columns;
    }();
    return all;
}
inline std::string selected() { return "SELECT " + columns().names + ", check_sum FROM pictures"; }

/// Appends a member to bytes that a sum is formed of.
struct Summed {
    std::string& bytes;
    void operator()(std::string_view text) const {
        (*this)(text.size());
        bytes += text;
    }
    void operator()(std::integral auto number) const {
        const auto value = static_cast<std::uint64_t>(number);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void operator()(const std::string& text) const { (*this)(std::string_view{text}); }
    void operator()(const storage::ContentHash& hash) const { (*this)(hash.text()); }
    void operator()(const Texts& texts) const {
        (*this)(texts.size());
        for (const std::string& text : texts) (*this)(text);
    }
    void operator()(const Fault& fault) const {
        (*this)(fault ? 1 : 0);
        if (!fault) return;
        (*this)(static_cast<int>(fault->reason));
        (*this)(fault->detail);
        (*this)(fault->damaged ? 1 : 0);
    }
};

/// CRC32C over everything a row says. `buffer` is kept between calls.
inline std::uint32_t check_sum(const IndexedPicture& picture, std::string& buffer) {
    buffer.clear();
    each_column(picture, [sum = Summed{buffer}](const char*, const auto& member) { sum(member); });
    return core::crc32c(std::as_bytes(std::span{buffer.data(), buffer.size()}));
}

inline std::string joined(const Texts& texts) {
    FieldWriter fields;
    for (const std::string& text : texts) fields << text;
    return fields.bytes();
}

/// Takes a member from the next columns of a row.
struct Read {
    const Statement& row;
    int& column;
    void operator()(std::string& text) const { text = row.text(column++); }
    template <std::integral Number>
    void operator()(Number& number) const {
        number = static_cast<Number>(row.integer(column++));
    }
    void operator()(storage::ContentHash& hash) const { hash = storage::ContentHash::of_text(row.text(column++)); }
    void operator()(Texts& texts) const {
        for (FieldReader fields{row.text(column++)}; !fields.empty();) texts.push_back(fields.text());
    }
    void operator()(Fault& fault) const {
        const int first = column;
        column += 3;
        if (row.is_null(first)) return;
        const std::int64_t reason = row.integer(first);
        if (reason < 0 || reason >= skip_reasons) throw Unusable{"a row has an unknown reason"};
        fault = std::make_unique<PictureFault>(PictureFault{
            static_cast<SkipReason>(reason), std::string{row.text(first + 1)}, row.integer(first + 2) != 0});
    }
};

/// A row of selected().
inline IndexedPicture picture_of(const Statement& row, std::string& buffer) {
    IndexedPicture picture;
    int column = 0;
    each_column(picture, [read = Read{row, column}](const char*, auto& member) { read(member); });
    if (check_sum(picture, buffer) != static_cast<std::uint32_t>(row.integer(column)))
        throw Unusable{"the check sum of a row is wrong"};
    return picture;
}

/// Gives a member to the next parameters of a statement.
struct Bind {
    Statement& to;
    const std::string& others;  // joined(), which lives until the statement has run
    void operator()(const std::string& text) const { to << std::string_view{text}; }
    void operator()(std::integral auto number) const { to << static_cast<std::int64_t>(number); }
    void operator()(const storage::ContentHash& hash) const { to << hash; }
    void operator()(const Texts&) const {
        if (others.empty())
            to << nullptr;
        else
            to << std::string_view{others};
    }
    void operator()(const Fault& fault) const {
        if (fault)
            to << static_cast<std::int64_t>(fault->reason) << std::string_view{fault->detail}
               << std::int64_t{fault->damaged ? 1 : 0};
        else
            to << nullptr << nullptr << nullptr;
    }
};

/// Keeps pictures, in a transaction of the caller's.
class Insert {
public:
    Insert(::sqlite3* database, const std::filesystem::path& file)
        : statement_{database, ("INSERT OR REPLACE INTO pictures VALUES (" + columns().places + ", ?)").c_str(), file} {
    }

    void operator()(const IndexedPicture& picture) {
        const std::string others = joined(picture.sample.other_captions);
        each_column(picture, [bind = Bind{statement_, others}](const char*, const auto& member) { bind(member); });
        statement_ << static_cast<std::int64_t>(check_sum(picture, buffer_));
        statement_.run();
    }

private:
    Statement statement_;
    std::string buffer_;
};

}  // namespace strata::datasets::detail::index
