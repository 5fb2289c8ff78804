#pragma once
// strata/tables/parquet.hpp - tables in Parquet files: chosen columns, batch by batch, in bounded memory.
//
// The format: github.com/apache/parquet-format (README.md, Encodings.md, Compression.md, parquet.thrift).
//   codecs     none, snappy, gzip, zstd, brotli, LZ4_RAW, LZ4 (Hadoop's frames, else a bare block)
//   encodings  PLAIN, dictionary, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY,
//              BYTE_STREAM_SPLIT; levels RLE and BIT_PACKED; data pages v1 and v2, with their CRC where there is one
//   columns    required and optional ones, lists of them in every form that writers have (LogicalTypes.md), and those
//              inside of structs; structs as a whole, maps and lists of lists are listed, and refused when asked for

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <strata/core/error.hpp>
#include <strata/storage/object_store.hpp>
#include <strata/tables/parquet_values.hpp>

namespace strata::tables {

/// A column that is asked for. `kind`: what its values must be; integers are taken as real numbers, and real numbers
/// without fraction as integers (a table library turns integers with gaps into floats; NaN is a gap then).
struct ParquetRequest {
    std::string name;  ///< as ParquetFile::find() takes it
    std::optional<ParquetKind> kind{};
    bool lists = false;  ///< a row may have any number of values; else a list is refused
};

namespace detail::parquet {
struct File;
struct Reading;
}  // namespace detail::parquet

/// The rows of some columns, a batch at a time, in the file's order. Not thread-safe; keeps what it needs alive.
///
///   for (auto batches = file.read({{"filename"}, {"width", ParquetKind::integer}}); batches.next();)
///       for (std::size_t row = 0; row < batches.rows(); ++row) use(batches.column(0).text(row));
class ParquetBatches {
public:
    explicit ParquetBatches(std::unique_ptr<detail::parquet::Reading> reading);
    ParquetBatches(ParquetBatches&&) noexcept;
    ParquetBatches& operator=(ParquetBatches&&) noexcept;
    ~ParquetBatches();

    /// Reads the next batch: at least one row and at most limits.batch_rows, never across a page of any column. False
    /// when there are no more. Throws as the file's reader does, Errc::corrupt_parquet, unsupported_parquet,
    /// parquet_too_large, wrong_column_type; then the object is of no further use.
    bool next();
    [[nodiscard]] std::size_t rows() const noexcept;
    [[nodiscard]] std::uint64_t first_row() const noexcept;              ///< in the file
    [[nodiscard]] const ParquetValues& column(std::size_t index) const;  ///< in the order of the request

private:
    std::unique_ptr<detail::parquet::Reading> reading_;
};

/// A Parquet file that is read in ranges: its end first, then of each chosen column only its own pages. Copies are
/// cheap and share the footer. Thread-safe if the reader is.
class ParquetFile {
public:
    /// Bytes [offset, offset + length) of the file, all of them; may throw.
    using ReadRange = detail::parquet::ReadRange;

    /// Reads the footer, one or two ranges. The first four bytes of the file are not looked at.
    ///
    ///   size    bytes of the file
    ///   source  named in messages: a path or an object's place
    ///
    /// Throws as `read` does, Errc::corrupt_parquet, unsupported_parquet (encrypted), parquet_too_large (footer), and
    /// io_failed when `read` gives fewer bytes than asked for.
    ParquetFile(ReadRange read, std::uint64_t size, std::string source, const ParquetLimits& limits = {});

    /// A file that is in memory as a whole.
    explicit ParquetFile(std::vector<std::byte> bytes, std::string source = "Parquet bytes",
                         const ParquetLimits& limits = {});

    [[nodiscard]] const std::vector<ParquetColumn>& columns() const noexcept;  ///< top-level ones, in the file's order
    /// The column of a name. One inside of structs has its path with dots between as a name, in which the groups that
    /// only make a list may be left out: "meta.captions.list.element" is "meta.captions".
    [[nodiscard]] std::optional<ParquetColumn> find(std::string_view name) const;
    [[nodiscard]] std::uint64_t rows() const noexcept;
    [[nodiscard]] std::size_t row_groups() const noexcept;
    [[nodiscard]] std::uint64_t rows_of(std::size_t row_group) const;

    /// The rows of `columns` in row groups [first, last); ranks or threads can share a file by its row groups.
    ///
    /// Throws Errc::no_such_column (with the names that there are), unsupported_parquet for a column that cannot be
    /// read, wrong_column_type for one of another kind, or of lists.
    [[nodiscard]] ParquetBatches read(const std::vector<ParquetRequest>& columns, std::size_t first = 0,
                                      std::size_t last = std::numeric_limits<std::size_t>::max()) const;

private:
    std::shared_ptr<const detail::parquet::File> file_;
};

/// An object of a store as a Parquet file. `store` must live as long as the file and what is read from it.
///
/// Throws Errc::not_found, and as ParquetFile's constructor does.
template <storage::ObjectStore Store>
[[nodiscard]] ParquetFile open_parquet(const Store& store, std::string_view key, const ParquetLimits& limits = {}) {
    const auto info = store.head(key);
    if (!info) throw Error{Errc::not_found, "there is no " + store.where(key), "correct the path of the Parquet file"};
    auto read = [&store, name = std::string{key}](std::uint64_t offset, std::uint64_t length) {
        return store.get_range(name, offset, length);
    };
    return ParquetFile{std::move(read), info->size, store.where(key), limits};
}

}  // namespace strata::tables

#ifndef STRATA_COMPILED
#include <strata/tables/impl/parquet.ipp>
#endif
