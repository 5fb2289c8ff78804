#pragma once
// strata/tables/detail/parquet_column_reader.hpp - one column in one row group, page after page.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <strata/tables/detail/parquet_encodings.hpp>
#include <strata/tables/detail/parquet_footer.hpp>
#include <strata/tables/detail/parquet_page.hpp>
#include <strata/tables/parquet_values.hpp>

namespace strata::tables::detail::parquet {

/// An open file: what its footer says, and how to read on.
struct File {
    ReadRange read;
    std::uint64_t size = 0;
    std::string source;
    ParquetLimits limits;
    Footer footer;
    std::uint64_t footer_begin = 0;  ///< pages lie before it

    /// Bytes [offset, offset + length), all of them, or Errc::io_failed.
    [[nodiscard]] std::vector<std::byte> fetch(std::uint64_t offset, std::uint64_t length) const;
};

/// The bytes of a column chunk from front to back, fetched limits.read_bytes at a time.
class ChunkBytes {
public:
    /// Chunks of some old writers are said to end 15 bytes too early (PARQUET-816): the head of the dictionary is not
    /// counted. So the last page may go on behind `size` by as much as a page's head has; none begins there.
    ChunkBytes(const File& file, std::uint64_t begin, std::uint64_t size);

    [[nodiscard]] bool at_end() const noexcept { return at_ >= end_ || at_ >= hard_end_; }  ///< no page begins here
    [[nodiscard]] std::uint64_t left() const noexcept { return hard_end_ - at_; }
    /// The next `count` bytes, count <= left(); valid until the next call.
    std::span<const std::byte> peek(std::uint64_t count);
    /// Those that begin with a page's head: `count`, or fewer where the chunk ends.
    std::span<const std::byte> peek_head(std::uint64_t count);
    void step(std::uint64_t count) noexcept { at_ += count; }

private:
    static constexpr std::uint64_t slack = 100;
    const File& file_;
    std::uint64_t at_;
    std::uint64_t end_;
    std::uint64_t hard_end_;
    std::vector<std::byte> held_;
    std::uint64_t held_begin_;  // offset in the file
};

/// Reads a column of a row group. Holds a read, a page unpacked and the dictionary.
class ColumnReader {
public:
    /// Throws Errc::corrupt_parquet, unsupported_parquet for what the footer says of the chunk.
    ColumnReader(const File& file, std::size_t row_group, std::size_t column);
    ColumnReader(const ColumnReader&) = delete;  // value readers keep `place_`
    ColumnReader& operator=(const ColumnReader&) = delete;

    /// Rows that are left of the page; the next page with rows is read when there are none. At least 1 before the row
    /// group's end. What was read before is gone when a page is read.
    std::uint64_t rows_in_page();
    /// The next `rows` rows, at most rows_in_page().
    ///
    ///   first_row  its number in the file, for messages
    void read(std::size_t rows, std::uint64_t first_row, ParquetValues& out);

private:
    template <class Value>
    struct Values {
        std::vector<Value> dictionary;
        std::unique_ptr<ValueReader<Value>> reader;
    };

    void next_page();
    void read_dictionary(const PageHeader& header, std::span<const std::byte> packed);
    void begin_page(const PageHeader& header, std::span<const std::byte> packed);
    void begin_page_v2(const PageHeader& header, std::span<const std::byte> packed);
    std::span<const std::byte> unpack_into(PageBuffer& buffer, std::span<const std::byte> packed, std::uint64_t size,
                                           bool is_packed = true);
    template <class Value>
    void read_present(Values<Value>& values, std::span<Value> out);
    void check_texts(const ParquetValues& values, std::uint64_t first_row) const;
    void finish_numbers(ParquetValues& values, std::uint64_t first_row) const;

    const ColumnFormat& format_;
    const ParquetLimits& limits_;
    Place place_;
    std::int32_t codec_ = 0;
    ChunkBytes bytes_;
    std::uint64_t rows_left_ = 0;  // of the row group, behind this page
    std::variant<Values<std::uint64_t>, Values<std::string_view>> values_;
    bool has_dictionary_ = false;
    PageBuffer dictionary_page_;

    // The page:
    PageBuffer page_;
    std::vector<std::byte> level_bytes_;  // of a v2 page
    std::optional<LevelReader> levels_;
    std::span<const std::byte> value_bytes_;
    Encoding encoding_ = Encoding::plain;
    std::uint64_t page_left_ = 0;
    std::optional<std::uint64_t> nulls_left_;  // a v2 page says how many there are
};

/// True if the bytes are UTF-8 (RFC 3629).
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_column_reader.ipp>
#endif
