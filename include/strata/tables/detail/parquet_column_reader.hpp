#pragma once
// strata/tables/detail/parquet_column_reader.hpp - one column in one row group, page after page, entry by entry.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include <strata/tables/detail/parquet_encodings.hpp>
#include <strata/tables/detail/parquet_file.hpp>
#include <strata/tables/detail/parquet_footer.hpp>
#include <strata/tables/detail/parquet_page.hpp>
#include <strata/tables/parquet_values.hpp>

namespace strata::tables::detail::parquet {

/// Levels of entries of a list column.
struct EntryLevels {
    std::vector<std::uint8_t> repetition;  ///< 0: a row begins
    std::vector<std::uint8_t> definition;
};

/// Reads a column of a row group, entry by entry: a row, or, of a list, an entry of one, or a list without entries.
/// Holds a read, a page unpacked and the dictionary.
class ColumnReader {
public:
    /// Throws Errc::corrupt_parquet, unsupported_parquet for what the footer says of the chunk. `file` and `leaf`
    /// outlive it.
    ///
    ///   first_row  of the row group, its number in the file, for messages
    ColumnReader(const File& file, std::size_t row_group, const Leaf& leaf, std::uint64_t first_row);
    ColumnReader(const ColumnReader&) = delete;  // value readers keep `place_`
    ColumnReader& operator=(const ColumnReader&) = delete;

    /// Entries that are left of the page; the next page with entries is read when there are none. 0 behind the last.
    /// What was read before is gone when a page is read.
    std::uint64_t entries_in_page();
    [[nodiscard]] std::uint64_t entries_left() const noexcept { return page_left_ + entries_left_; }
    /// The next `count` entries, at most entries_in_page(): their values, null where an entry has none.
    ///
    ///   levels  of a list column: where its levels go
    void read(std::size_t count, ParquetValues& out, EntryLevels* levels = nullptr);

    [[nodiscard]] const Place& place() const noexcept { return place_; }

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
    void begin_levels(std::optional<LevelReader>& levels, ByteCursor& in, std::int32_t encoding, unsigned most,
                      std::uint32_t values);
    std::span<const std::byte> unpack_into(PageBuffer& buffer, std::span<const std::byte> packed, std::uint64_t size,
                                           bool is_packed = true);
    template <class Value>
    void read_present(Values<Value>& values, std::span<Value> out);
    template <class Value>
    void spread(Values<Value>& values, const std::vector<std::uint8_t>& present, std::size_t there,
                std::vector<Value>& slots);
    void check_texts(const ParquetValues& values) const;
    void finish_numbers(ParquetValues& values) const;
    void form_texts(ParquetValues& values);
    [[nodiscard]] std::string row_name(std::size_t slot) const;  ///< "row 7"

    const ColumnFormat& format_;
    const ParquetLimits& limits_;
    Place place_;
    std::int32_t codec_ = 0;
    ChunkBytes bytes_;
    std::uint64_t first_row_;      // of the entries that were read last
    std::uint64_t rows_read_ = 0;  // begun among those before them
    const EntryLevels* levels_read_ = nullptr;
    std::uint64_t entries_left_ = 0;  // of the chunk, behind this page
    std::variant<Values<std::uint64_t>, Values<std::string_view>> values_;
    bool has_dictionary_ = false;
    PageBuffer dictionary_page_;

    // The page:
    PageBuffer page_;
    std::vector<std::byte> level_bytes_;  // of a v2 page
    std::optional<LevelReader> repetition_;
    std::optional<LevelReader> definition_;
    std::span<const std::byte> value_bytes_;
    Encoding encoding_ = Encoding::plain;
    std::uint64_t page_left_ = 0;
    std::optional<std::uint64_t> nulls_left_;  // a v2 page says how many there are

    // Of values that are formed:
    std::vector<std::string_view> stored_;
    std::vector<char> formed_;
};

}  // namespace strata::tables::detail::parquet

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet_column_reader.ipp>
#endif
