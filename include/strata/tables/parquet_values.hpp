#pragma once
// strata/tables/parquet_values.hpp - the columns of a Parquet file, what they may cost, and the values of a batch.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>

namespace strata::tables {

/// What the values of a column are to a program.
enum class ParquetKind : std::uint8_t {
    text,     ///< BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY: bytes; checked to be UTF-8 where the schema says so
    integer,  ///< INT32, INT64, signed or not: 64 bits; dates and times are the stored number
    real,     ///< FLOAT, DOUBLE, and DECIMAL kept in INT32 or INT64
    boolean,
};

[[nodiscard]] constexpr std::string_view name_of(ParquetKind kind) noexcept {
    constexpr std::string_view names[] = {"text", "integers", "real numbers", "booleans"};
    return names[static_cast<std::size_t>(kind)];
}

/// A top-level column of a file.
struct ParquetColumn {
    std::string name;
    ParquetKind kind = ParquetKind::text;
    bool nullable = false;
    std::string refusal;  ///< why it cannot be read ("it is nested: a list, map or struct"); empty: it can
};

/// What a file may make this process hold. A footer takes up to 15 times its bytes. A batch holds, for each of its
/// columns, one page packed (twice while it arrives) and unpacked, one dictionary, one read, and 25 bytes a row.
struct ParquetLimits {
    std::uint64_t footer_bytes = 32ULL << 20;
    /// Of one page, packed or unpacked; of a dictionary's entries, 8 or 16 bytes each; and of the texts that
    /// DELTA_BYTE_ARRAY makes for one batch. Some writers make a column one page.
    std::uint64_t page_bytes = 256ULL << 20;
    std::uint64_t read_bytes = 8ULL << 20;  ///< asked for at once, unless a page is larger
    std::size_t batch_rows = 65536;
};

/// One column of a batch: a value or nothing for each row. Views live until the next batch is read.
class ParquetValues {
public:
    [[nodiscard]] ParquetKind kind() const noexcept { return kind_; }
    [[nodiscard]] std::size_t rows() const noexcept { return present_.size(); }
    [[nodiscard]] bool is_null(std::size_t row) const { return present_.at(row) == 0; }

    // The value of a row, nullopt where it is null. Throws Errc::wrong_column_type if the column is of another kind.
    [[nodiscard]] std::optional<std::string_view> text(std::size_t row) const {
        require(ParquetKind::text);
        return is_null(row) ? std::nullopt : std::optional{texts_[row]};
    }
    [[nodiscard]] std::optional<std::int64_t> integer(std::size_t row) const {
        require(ParquetKind::integer);
        return is_null(row) ? std::nullopt : std::optional{std::bit_cast<std::int64_t>(numbers_[row])};
    }
    [[nodiscard]] std::optional<double> real(std::size_t row) const {
        require(ParquetKind::real);
        return is_null(row) ? std::nullopt : std::optional{std::bit_cast<double>(numbers_[row])};
    }
    [[nodiscard]] std::optional<bool> boolean(std::size_t row) const {
        require(ParquetKind::boolean);
        return is_null(row) ? std::nullopt : std::optional{numbers_[row] != 0};
    }

    // For what fills it: `numbers` are int64, double or 0/1 by their bits; of a kind only one of the two is used.
    std::vector<std::uint8_t>& present() noexcept { return present_; }
    std::vector<std::string_view>& texts() noexcept { return texts_; }
    std::vector<std::uint64_t>& numbers() noexcept { return numbers_; }
    void set_kind(ParquetKind kind) noexcept { kind_ = kind; }

private:
    void require(ParquetKind kind) const;
    ParquetKind kind_ = ParquetKind::text;
    std::vector<std::uint8_t> present_;  // 1: there is a value
    std::vector<std::string_view> texts_;
    std::vector<std::uint64_t> numbers_;
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

}  // namespace strata::tables
