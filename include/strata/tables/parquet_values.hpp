#pragma once
// strata/tables/parquet_values.hpp - the columns of a Parquet file, what they may cost, and the values of a batch.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>

namespace strata::tables {

/// What the values of a column are to a program.
enum class ParquetKind : std::uint8_t {
    text,     ///< BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY: bytes; checked to be UTF-8 where the schema says so; a UUID in its
              ///< usual form, 8-4-4-4-12 digits in lower case
    integer,  ///< INT32, INT64, signed or not: 64 bits; dates and times are the stored number; INT96, the time stamp of
              ///< old writers, is microseconds since 1970 in UTC, rounded down
    real,     ///< FLOAT, DOUBLE, FLOAT16, and DECIMAL of up to 38 digits, however it is stored
    boolean,
};

[[nodiscard]] constexpr std::string_view name_of(ParquetKind kind) noexcept {
    constexpr std::string_view names[] = {"text", "integers", "real numbers", "booleans"};
    return names[static_cast<std::size_t>(kind)];
}

/// A column of a file: one at its top level, or one inside of a struct, whose name is its path: "meta.caption".
struct ParquetColumn {
    std::string name;
    ParquetKind kind = ParquetKind::text;  ///< of a list: of its entries
    bool nullable = false;                 ///< a row, or an entry of a list, may have no value
    bool is_list = false;                  ///< a row has any number of values
    std::string refusal{};                 ///< why it cannot be read ("it is nested: a struct ..."); empty: it can
};

/// What a file may make this process hold. A footer takes up to 15 times its bytes. A batch holds, for each of its
/// columns, one page packed (twice while it arrives) and unpacked, one dictionary, one read, and 25 bytes a row,
/// or, of lists, 50 bytes an entry.
struct ParquetLimits {
    std::uint64_t footer_bytes = 32ULL << 20;
    /// Of one page, packed or unpacked; of a dictionary's entries, 8 or 16 bytes each; and of the texts that
    /// DELTA_BYTE_ARRAY makes for one batch. Some writers make a column one page.
    std::uint64_t page_bytes = 256ULL << 20;
    std::uint64_t read_bytes = 8ULL << 20;  ///< asked for at once, unless a page is larger
    std::size_t batch_rows = 65536;
    std::uint64_t list_entries = 1ULL << 20;  ///< of one row
};

/// One column of a batch: of each row a value or nothing, or, of a list, any number of entries, each a value or
/// nothing. Views live until the next batch is read.
class ParquetValues {
public:
    [[nodiscard]] ParquetKind kind() const noexcept { return kind_; }
    [[nodiscard]] bool is_list() const noexcept { return !begins_.empty(); }
    [[nodiscard]] std::size_t rows() const noexcept { return is_list() ? begins_.size() - 1 : present_.size(); }
    /// Of a list: there is none; an empty list is not null.
    [[nodiscard]] bool is_null(std::size_t row) const { return (is_list() ? lists_ : present_).at(row) == 0; }
    /// How many values a row has: 0 where the row is null, else 1,
    /// or as many as the list has, nulls counted.
    [[nodiscard]] std::size_t entries(std::size_t row) const {
        if (!is_list()) return is_null(row) ? 0 : 1;
        return begins_.at(row + 1) - begins_[row];
    }

    // The value of a row, nullopt where it is null. Throws Errc::wrong_column_type if the column is of another kind, or
    // a list.
    [[nodiscard]] std::optional<std::string_view> text(std::size_t row) const { return text_in(only(row)); }
    [[nodiscard]] std::optional<std::int64_t> integer(std::size_t row) const { return integer_in(only(row)); }
    [[nodiscard]] std::optional<double> real(std::size_t row) const { return real_in(only(row)); }
    [[nodiscard]] std::optional<bool> boolean(std::size_t row) const { return boolean_in(only(row)); }

    // An entry of a row, entry < entries(row), nullopt where it is null. Of any column.
    [[nodiscard]] std::optional<std::string_view> text(std::size_t row, std::size_t entry) const {
        return text_in(one_of(row, entry));
    }
    [[nodiscard]] std::optional<std::int64_t> integer(std::size_t row, std::size_t entry) const {
        return integer_in(one_of(row, entry));
    }
    [[nodiscard]] std::optional<double> real(std::size_t row, std::size_t entry) const {
        return real_in(one_of(row, entry));
    }
    [[nodiscard]] std::optional<bool> boolean(std::size_t row, std::size_t entry) const {
        return boolean_in(one_of(row, entry));
    }

    // For what fills it: `numbers` are int64, double or 0/1 by their bits; of a kind only one of the two is used. Of a
    // list all three have an element an entry, `lists` one a row, and `begins` one a row and one behind them.
    std::vector<std::uint8_t>& present() noexcept { return present_; }
    std::vector<std::string_view>& texts() noexcept { return texts_; }
    std::vector<std::uint64_t>& numbers() noexcept { return numbers_; }
    std::vector<std::uint8_t>& lists() noexcept { return lists_; }
    std::vector<std::size_t>& begins() noexcept { return begins_; }
    void set_kind(ParquetKind kind) noexcept { kind_ = kind; }
    /// The row that has the value in place `slot` of `present`.
    [[nodiscard]] std::size_t row_of(std::size_t slot) const noexcept {
        if (!is_list()) return slot;
        return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), slot) - begins_.begin()) - 1;
    }

private:
    [[nodiscard]] std::size_t only(std::size_t row) const {
        if (is_list()) throw_list();
        (void)present_.at(row);
        return row;
    }
    [[nodiscard]] std::size_t one_of(std::size_t row, std::size_t entry) const {
        if (entry >= entries(row)) throw std::out_of_range{"ParquetValues: no such entry"};
        return is_list() ? begins_[row] + entry : row;
    }
    [[nodiscard]] std::optional<std::string_view> text_in(std::size_t slot) const {
        require(ParquetKind::text);
        return present_[slot] == 0 ? std::nullopt : std::optional{texts_[slot]};
    }
    [[nodiscard]] std::optional<std::int64_t> integer_in(std::size_t slot) const {
        require(ParquetKind::integer);
        return present_[slot] == 0 ? std::nullopt : std::optional{std::bit_cast<std::int64_t>(numbers_[slot])};
    }
    [[nodiscard]] std::optional<double> real_in(std::size_t slot) const {
        require(ParquetKind::real);
        return present_[slot] == 0 ? std::nullopt : std::optional{std::bit_cast<double>(numbers_[slot])};
    }
    [[nodiscard]] std::optional<bool> boolean_in(std::size_t slot) const {
        require(ParquetKind::boolean);
        return present_[slot] == 0 ? std::nullopt : std::optional{numbers_[slot] != 0};
    }
    void require(ParquetKind kind) const;
    [[noreturn]] static void throw_list();

    ParquetKind kind_ = ParquetKind::text;
    std::vector<std::uint8_t> present_;  // 1: there is a value
    std::vector<std::string_view> texts_;
    std::vector<std::uint64_t> numbers_;
    std::vector<std::uint8_t> lists_;  // 1: there is a list, perhaps an empty one
    std::vector<std::size_t> begins_;  // of each row's entries; empty: no list
};

namespace detail::parquet {
/// Bytes [offset, offset + length) of a file, all of them; may throw.
using ReadRange = std::function<std::vector<std::byte>(std::uint64_t offset, std::uint64_t length)>;
}  // namespace detail::parquet

inline void ParquetValues::require(ParquetKind kind) const {
    if (kind != kind_)
        throw Error{
            Errc::wrong_column_type,
            "a Parquet column of " + std::string{name_of(kind_)} + " was asked for " + std::string{name_of(kind)},
            "ask for the column with the kind that the program needs"};
}

inline void ParquetValues::throw_list() {
    throw Error{Errc::wrong_column_type, "a Parquet column of lists was asked for one value a row",
                "ask for the entries of each row"};
}

}  // namespace strata::tables
